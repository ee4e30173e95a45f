"""What every other package stands on: files that a hostile project can't misuse, and data classes that load quickly.

Imports nothing of the project, and of the standard library little: a hook loads `paths` at every call of an agent. Begin with
`paths.open_regular`, by which every file that may be somebody else's is opened.
"""
