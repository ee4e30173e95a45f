"""What spec 003 says of context packages, by clause."""

from __future__ import annotations

PACKAGES = {
    "003-P1": "An agent's needs name artifacts, the project's and the task's context, failures and executions.",
    "003-P2": "Required items are given in full, or assembling fails and names what does not fit and by how much.",
    "003-P3": "Optional items are given in full, else as summaries; references as summaries; what is left truncated, and said.",
    "003-P4": "A package is never over its budget, of which parts are reserved for the prompt and the task.",
    "003-P5": "A need has a limit of tokens, may ask for the summary, and a priority.",
    "003-P6": "Whatever may not be read is not in a package; what the caller named is listed as what is not there.",
    "003-P7": "What an artifact depends on is pulled in.",
    "003-P8": "A package is YAML in the form of the specification, and JSON.",
    "003-P9": "The same state gives the same package, apart from the time.",
    "003-P10": "A package is recorded with what each item asked for and got, by which rule and why.",
    "003-P11": "An agent asks for further items; each has its own status, and the whole is partial when some are missing.",
    "003-P12": "A name that is not found brings names like it that the asker may read, and the failure is logged.",
    "003-P13": "Summaries are cached by content, strategy and counter, and dropped when the content changes.",
    "003-P14": "Tokens are estimated, or counted exactly; a package says which and how far off that may be.",
    "003-P15": "A model may write better summaries; the one by structure is always there.",
    "003-P17": "A summary keeps to its target (YAML 20 %, Markdown 25 %, code 30 %), and uses the room that it leaves.",
    "003-P16": "Entries, snapshots and continuations can be items too.",
}
"""What an agent is given for its work."""
