"""Memory of agents beyond one context: retain, recall and reflect.

Start with `note_memory`: an episode of memory is a note with a tag. `candidates` finds and ranks episodes for recall,
`reflection` sums them up, and `episodes` summarises ended sessions. This package may import `ctxmgr.history` and the layers
below.
"""
