"""How detectors compare text: fingerprints, similarity, volatile parts, vocabulary.

Begin with `fingerprints`: two calls are the same if their fingerprints are (ruling 7). `vocabulary` holds the meaning of
words. Imports nothing of the detectors.
"""
