"""Drawings that several commands, the browser or a report share. A drawing for a single command stands in the command's module.

Start with `layout`, the parts of all views: spans, columns, times, short ids. A view takes an answer and writes its text
through `safe_text`, the one filter between recorded content and a terminal. It imports `ctxmgr.types` and pure helpers, but no
store.
"""
