"""Asking a language model to improve what the rules found: optional, bounded, and never able to break it."""
