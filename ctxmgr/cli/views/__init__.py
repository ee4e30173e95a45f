"""Terminal output for people, one noun a module."""
