"""The shared history: importing, judging, the event bus and the seven tools. Start with `query.tools`."""
