"""Whether a history is sound: its sums, the tables that follow from its records, and what a look without reading tells.

Begin with `examination`. What is wrong is told as ranges of `damage`.
"""
