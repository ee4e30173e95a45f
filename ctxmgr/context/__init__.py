"""Context packages: what an agent needs, chosen under a token budget. Start with `service`."""
