"""Other records about a failure of any class, and what they add to a diagnosis (`related_records`)."""
