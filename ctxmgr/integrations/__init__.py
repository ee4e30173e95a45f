"""What other tools load of ctxmgr: each module serves one of them alone, by whose name it goes.

People import these modules by their names, so each keeps its own. Begin with `guarded_run`, which serves them all.

May import `ctxmgr.workspace`, `ctxmgr.recorder` and what lies below them.
"""
