"""Pure helpers for text: words and stems, token counts, content kinds, patterns compiled at first use.

Imports nothing of the project but `ctxmgr.errors` and `ctxmgr.base`. Begin with `tokens`, by which every budget counts.
"""
