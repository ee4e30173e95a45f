"""Turn a finding or a request into exactly one continuation.

The way of a request, and where to read it:

1. `service` judges the session; `stuck_request` turns a finding into a request, or an agent brings its own.
   `stuck_handler` does the same for a running workflow.
2. `recovery.Recovery.answer` takes the lease, looks what was answered before (`earlier_answers`), gathers all that the
   next steps read in a `case.Case`, and writes the answer down with its notes and its snapshot. Of these modules only the
   stuck handler writes, too: that the run is stuck.
3. `routing` chooses the one agent that continues, and builds a request that this agent takes.
4. `evidence` reads the history: `brief` first, `retrieval` for what a request asks for, `related` for other sessions.
5. `answer` puts it together: `draft` the whole, `prompt` the text for the agent. The command draws the page for people.
6. `model` may improve the answer, where a model is configured. `answer.gate` checks whatever it proposes.
7. `injection` withholds recorded text that gives orders, at every step.

May import `ctxmgr.diagnose`, `ctxmgr.context` and what lies below; `ctxmgr.workspace` calls it.
"""
