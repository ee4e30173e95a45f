"""What spec 003 says of artifacts and of what is done with them, by clause."""

from __future__ import annotations

ACCESS = {
    "003-A1": "A rule grants read or write, or forbids with none, to one agent or to any.",
    "003-A2": "Artifacts, context and history are apart: a rule speaks of one of these types.",
    "003-A3": "A pattern is everything, the asking agent's own, all of one agent, or one thing.",
    "003-A4": "The rule with the lowest priority number decides, whatever order the rules stand in.",
    "003-A5": "What no rule grants is denied.",
    "003-A6": "By default every agent reads and writes its own artifacts.",
    "003-A7": "By default each agent of the table may do what its row says, and no more.",
    "003-A8": "By default each agent may read what its needs name.",
    "003-A9": "The default needs are those of the specification, by ids that match its agents.",
    "003-A10": "An agent that pulls items gets those it may read; the others are denied one by one.",
    "003-A11": "A denied access has a reason that says which rule denies it and what would grant it.",
    "003-A12": "A changed set of rules can be tried on the reads of the past.",
    "003-A13": "Only the operator changes rules.",
    "003-A14": "What an agent was granted and what it was denied is logged.",
}
"""Who may read or write what."""

CONTEXT = {
    "003-C1": "A key of the context has a type, a value, a description, and says who set it and when.",
    "003-C2": "A change of the context is logged in history.",
    "003-C3": "A key that does not exist is refused unless new ones are wanted.",
    "003-C4": "The number of the context's version is a key of it.",
    "003-C5": "Setting a key needs the right to write it.",
    "003-E1": "A run of an agent is recorded with its artifacts, context version, tokens, times and error.",
    "003-E2": "Runs are entries of the one history: started, then completed or failed.",
    "003-E3": "Runs are found by agent, task, sprint and status, up to a limit.",
}
"""The project's shared state and the runs of its agents."""
