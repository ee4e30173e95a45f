"""Ask a language model to improve the rules' answer; optional, bounded, never able to break it."""
