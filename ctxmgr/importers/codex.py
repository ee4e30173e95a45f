"""Read Codex rollouts of every era."""
