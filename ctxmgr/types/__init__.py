"""Every model that crosses a boundary, one noun a module."""
