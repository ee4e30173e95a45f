"""What agents produced, in versions: bytes by their hash beside the store, all that is known of them in its history."""
