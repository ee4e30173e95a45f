"""The answer itself: facts, alternatives, cause and next step, as fields and as the text for an agent.

Begin with `draft`, which puts a continuation together. `prompt` writes what the agent reads; `gate` checks what is recorded.
May import `recover.evidence`, `recover.target` and `ctxmgr.diagnose`.
"""
