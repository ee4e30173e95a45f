"""Failure classes of where a call runs: its folder, its shell, its tools and installed packages."""
