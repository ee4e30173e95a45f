"""How detectors compare text: fingerprints, similarity, volatile parts, vocabulary.

Begin with `fingerprints`: two calls are the same when these are (ruling 7). `vocabulary` holds what words mean. Imports nothing
of the detectors.
"""
