"""The history tools and what an agent may see through them. Start with `tools`."""
