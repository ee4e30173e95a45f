"""Flight recorder and recovery desk for agent workflows."""

__version__ = "0.1.0"
