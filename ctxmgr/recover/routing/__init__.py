"""Who continues: the routing table, the choice of one agent, and the request that it takes.

Begin with `target.choose`; `routes` holds who may be sent what. May import `recover.case` and `recover.evidence`.
"""
