"""The shapes that cross a boundary: requests beside their answers, one subject a module.

Start with `base.Shape`, which builds a pydantic model only if one is needed. Then read the subject: `query` for the history
tools, `finding`, `route`, `goal`, `context_package`. This package uses no store and no clock. It may import `ctxmgr.text`,
`ctxmgr.log` and `ctxmgr.errors`.
"""
