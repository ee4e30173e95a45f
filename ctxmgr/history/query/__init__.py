"""The history tools, and what an agent may see through them.

Begin with `tools`: one request and one answer type each, for the library, the command line and other programs. `requests`
converts them to models, `address` finds what a request names, `filtered_store` is the history as one agent may see it.
"""
