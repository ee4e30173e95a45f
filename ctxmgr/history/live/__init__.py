"""Record and judge a workflow while it runs, and follow what other programs write.

Begin with `blackboard.BlackboardHistory`, which records, publishes and judges at once. `record_sources` follows records of
other programs. May import what `ctxmgr.history` may.
"""
