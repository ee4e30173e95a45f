"""A workflow while it runs: event bus, blackboard, monitor, and following what others write.

Begin with `blackboard.BlackboardHistory`, which records, publishes and judges at once; `record_sources` follows what other
programs write. May import what `ctxmgr.history` may.
"""
