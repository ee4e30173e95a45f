"""The seam of a detector."""
