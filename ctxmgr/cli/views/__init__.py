"""What people see: one module a noun, each a set of functions that draw an answer on a printer."""
