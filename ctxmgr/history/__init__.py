"""The shared history and the seven tools over it: trace, list, search, show, messages, note, snapshot."""
