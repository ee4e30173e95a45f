"""What several commands, the browser or a report draw; what one command alone draws stands in that command's module.

A view takes an answer and writes text through `safe_text`, the one filter between recorded content and a terminal.
"""
