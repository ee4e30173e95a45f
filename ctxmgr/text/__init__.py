"""Pure text helpers: token counts, content kinds, YAML output. Imports nothing of the project but `errors`."""
