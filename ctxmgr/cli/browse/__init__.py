"""A history in the terminal: the list of sessions, the timeline of a session, an entry. Start with `screens.Browser`.

`history` answers questions on its own threads, `lines` turns answers into lines, `widgets` draw only the visible lines, and
`screens` combine them. This package imports `ctxmgr.workspace` and `cli.views`. No other package loads Textual.
"""
