"""A history in the terminal, to look around in: sessions, the timeline of one, an entry. Begin with `screens.Browser`.

`history` answers questions on threads of its own, `lines` turns answers into lines, `widgets` show the lines that are in
sight and no others, `screens` put them together. Imports `ctxmgr.workspace` and `cli.views`. Textual is loaded here alone.
"""
