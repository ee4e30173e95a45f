"""Memory of agents beyond one context: retain, recall and reflect.

Begin with `note_memory`: a memory is a note with a tag. `candidates` finds and ranks what recall returns; `episodes` makes
the memory of a session that ended. May import `ctxmgr.history` and below.
"""
