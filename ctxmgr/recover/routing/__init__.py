"""Decide who continues: the routing table, the choice of one agent, and the request that it accepts.

Begin with `target.choose`. `routes` holds which agent may be sent what. May import `recover.evidence`.
"""
