"""Other records that bear on a failure, whatever its class, and what they add to a diagnosis (`related_records`)."""
