"""What outlives a terminal: a session as one HTML file, and what a build wants to know of its logs.

Begin with `document.read_session`, which collects what a page shows, and `check.check_logs`, which judges logs for a build;
`timeline` lays the calls out in time. Imports `ctxmgr.workspace`, `cli.detection` and `cli.views`; only
`document` loads jinja2.
"""
