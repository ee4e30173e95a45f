"""The importer of Codex logs. Start with `importer`."""
