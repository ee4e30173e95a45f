"""Ask a language model to improve the rules' answer. This is optional and bounded, and can't break the answer.

Begin with `consultation`, which decides what to use of the model's answer. `client` enforces limits, `dialogue` talks to the
model, `tools` are what it may read. Only `dialogue` loads the model library.
"""
