"""Pure helpers for text: words and stems, token counts, content kinds, patterns compiled at first use.

Begin with `tokens`, which counts for every budget. Imports nothing of the project but `ctxmgr.errors` and `ctxmgr.base`.
"""
