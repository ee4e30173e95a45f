"""Files about sessions: a session as one HTML page, and the results of checks for builds.

Start with `document.read_session`, which collects the content of a page, and `check.check_logs`, which judges logs for a build.
`timeline` arranges the calls in time. This package imports `ctxmgr.workspace`, `cli.detection` and `cli.views`. Only `document`
loads jinja2.
"""
