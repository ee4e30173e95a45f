"""What other tools load of ctxmgr: each module serves one of them alone; `pytest_plugin` is that of pytest.

May import `ctxmgr.workspace`, `ctxmgr.recorder` and what lies below them.
"""
