"""How detectors compare text: fingerprints, similarity, volatile parts, vocabulary."""
