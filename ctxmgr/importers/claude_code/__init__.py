"""The importer of Claude Code logs. Start with `importer`."""
