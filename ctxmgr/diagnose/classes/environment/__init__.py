"""Failure classes of the place in which a call runs: its folder, its shell, its tools and installed packages."""
