"""Versioned artifacts: what agents produced, stored by hash. Start with `service`."""
