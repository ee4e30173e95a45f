"""One session as one HTML file: what is wrong and what to do, who did what when, and the evidence.

Begin with `document.read_session`; `timeline` computes the picture, `page` writes the file from ``session.html``.
May import the views' formatting and everything below the command line; jinja2 is loaded by `page` alone.
"""
