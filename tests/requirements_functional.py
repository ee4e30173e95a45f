"""The functional requirements and measurable outcomes of the context manager specification (spec 000)."""

from __future__ import annotations

FUNCTIONAL = {
    "FR-001": "A workflow that repeats an action beyond a configurable threshold is detected.",
    "FR-002": "A found loop can be raised as an error that carries its pattern.",
    "FR-003": "A workflow that makes no progress for a configurable time is detected as hung.",
    "FR-004": "The stuck handler catches loop and hung errors and escalates to the context manager.",
    "FR-005": "Loop detection moves on with every single entry that joins the history.",
    "FR-006": "An interrupt or a human message clears what loop detection has gathered.",
    "FR-007": "Trace returns the ordered history of an action or agent.",
    "FR-008": "Search finds entries by content, action name or input type.",
    "FR-009": "List pages through a history with offset, limit and hasMore.",
    "FR-010": "Show fetches one entry by its id or its index.",
    "FR-011": "Messages pages through the message events of one entry.",
    "FR-012": "Note attaches text and classification tags to entries.",
    "FR-013": "Every tool finds its history by a session id that is mapped to the agent process.",
    "FR-014": "The history subscribes to the event bus when a workflow starts.",
    "FR-015": "Every event that the bus publishes is captured: stream deltas, thoughts, tool calls and the rest.",
    "FR-016": "The history unsubscribes when the workflow completes.",
    "FR-017": "Only an agent's request, the stuck handler or a review or merge agent invokes the context manager.",
    "FR-018": "The context manager answers with exactly one continuation request.",
    "FR-019": "The context manager never calls itself.",
    "FR-020": "Review and merge agents can ask for context explicitly.",
    "FR-022": "Notes carry classification tags such as diagnostic, routing or exclusion.",
    "FR-023": "Notes add to a history and never change an entry.",
    "FR-024": "Notes are kept with the history in a form that can be queried.",
    "FR-025": "History queries filter by time range, action name and input type.",
    "FR-026": "A session id is mapped to the processes that executed it.",
}

OUTCOMES = {
    "SC-001": "95 % of the workflows that lost context recover without a person.",
    "SC-002": "A degenerate loop is found within three rounds of its pattern.",
    "SC-003": "A hung workflow is found within two minutes of its stall.",
    "SC-004": "A recovery returns its continuation request within thirty seconds.",
    "SC-005": "Queries over 1,000 entries answer within five seconds.",
    "SC-006": "A rebuilt context refers to every entry that the recovery needs.",
    "SC-007": "No recovery ever starts another recovery of itself.",
    "SC-008": "Notes come back with their entries from every query.",
    "SC-009": "Paging works however long a history grows.",
    "SC-010": "90 % of loop recoveries break the loop at the first attempt.",
    "SC-011": "Every event published while a workflow runs is captured.",
    "SC-012": "Every invocation returns exactly one continuation request.",
    "SC-013": "An interrupt resets loop detection with the very record in which it arrives.",
    "SC-014": "90 % of review and merge escalations rebuild the context they asked for.",
}
