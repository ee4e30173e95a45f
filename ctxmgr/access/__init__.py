"""Access rules and a project's shared state: who may read or write what. Start with `rules` and `guard`."""
