"""The project's shared state: context keys, access rules, executions, and who may touch them."""
