"""Whether a history is sound: its sums, the tables that follow from its records, and what a look without reading tells.

Begin with `verification`. What is wrong is told as ranges of `engine.log_bytes`, which reading a log loads too. `status`
looks at counts and versions only. It may import `engine` and `write`, to make the tables once more and compare them.
"""
