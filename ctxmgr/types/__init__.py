"""Every shape that crosses a boundary; one module a noun."""
