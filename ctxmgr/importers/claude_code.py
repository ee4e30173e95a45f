"""Read Claude Code transcripts of every era."""
