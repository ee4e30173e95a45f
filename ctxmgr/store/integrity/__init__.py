"""Whether a history is sound: its sums, the tables that follow from its records, and what a look without reading tells.

Begin with `verification`. What is wrong is told as ranges of `damage`, a module of its own, for reading a log loads it.
`status` looks at counts and versions only. It may import `engine` and `write`, to make the tables once more and compare them.
"""
