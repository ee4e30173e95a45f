"""Memory of agents beyond one context: retain, recall and reflect.

Begin with `note_memory`: a memory is a note with a tag. `candidates` finds and ranks what recall tells, `reflection` joins
what belongs together. May import `ctxmgr.history` and below.
"""
