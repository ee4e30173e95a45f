"""From a finding or a request to exactly one continuation. Start with `agent`."""
