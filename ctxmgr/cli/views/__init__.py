"""What several commands, the browser or a report draw; what one command alone draws stands in that command's module.

Begin with `layout`, the pieces of all views: spans, columns, times, short ids. A view takes an answer and writes text through
`safe_text`, the one filter between recorded content and a terminal. Imports `ctxmgr.types` and pure helpers, no store.
"""
