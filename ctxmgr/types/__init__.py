"""Every shape that crosses a boundary, one noun a module: requests beside their answers.

Begin with `base.Shape`, which builds a pydantic model only when one is needed, then read the noun at hand: `query` for the
history tools, `finding`, `route`, `goal`, `context_package`. Touches no store and no clock. May import `ctxmgr.text`,
`ctxmgr.log` and `ctxmgr.errors`.
"""
