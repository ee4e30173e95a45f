"""Turn a finding or a request into exactly one continuation.

How a request is answered, and which module does it:

1. `service` judges the session. `stuck_request` turns a finding into a request; an agent may also send its own.
   `stuck_handler` does the same for a running workflow.
2. `recovery.Recovery.answer` takes the lease and looks for an earlier answer (`earlier_answers`). It gathers the input of
   the next steps in a `brief.Case`, and records the answer with its notes and its snapshot. The stuck handler is the only
   other module here that writes: it records that the run is stuck.
3. `target` chooses the one agent that continues, among those that the table in `routes` allows, and builds its request.
4. `evidence` reads the history: `brief` first, `retrieval` for what a request asks for, `related` for other sessions.
5. `answer` writes the answer: `draft` puts it together, `prompt` writes the agent's text. The command draws the page.
6. `model` may improve the answer if a model is configured. `answer.gate` checks each of its proposals.
7. `injection` withholds recorded text that gives orders. Every step uses it.

May import `ctxmgr.diagnose`, `ctxmgr.context` and the layers below them. `ctxmgr.workspace` calls it.
"""
