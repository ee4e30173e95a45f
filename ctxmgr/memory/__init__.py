"""What agents keep beyond one context: retain, recall and reflect. Start with `note_memory`."""
