"""Small recorded runs in which one agent goes in circles over something that another agent already knows, or nobody does.

In half of those that hold the answer it stands in other words than the question; where rules match words, only a reader
of sense finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.store import open_store
from ctxmgr.types.plain_records import build

START = 1_769_076_000.0
ROUNDS = 4

BETWEEN = (
    ("make lint", "no complaints"), ("make build", "built in 41 s"), ("git status", "nothing to commit"),
    ("make test", "212 passed"), ("git log -1", "a5c1 Tidy the changelog"), ("ls dist", "app.tar.gz"),
)  # fmt: skip
"""What was done between the reading and the trouble: the answer does not stand right before the question."""

Wording = Literal["same", "other", "none"]


@dataclass(frozen=True, slots=True)
class History:
    """One recorded run.

    Attributes:
        name: the session's id too.
        goal: what the person asked for.
        known: what the scout read before: (input, output).
        asked: what the worker asks again and again.
        reply: what it gets each time.
        answer: which of ``known`` answers it; None when none does.
        wording: whether the answer shares its words with the question.
    """

    name: str
    goal: str
    known: Sequence[tuple[str, str]]
    asked: str
    reply: str
    answer: int | None
    wording: Wording

    @property
    def answer_id(self) -> str | None:
        """The id of the entry that answers the question."""
        return None if self.answer is None else entry_id(self.name, self.answer)

    def records(self) -> list[Record]:
        """Return the run as records: the person's words, what the scout read, the work between, the rounds."""
        told = build("event", self.name, format_time(START), id=f"{self.name}-goal", type="user_message", agent="user",
                     data={"text": self.goal})  # fmt: skip
        steps = [("scout", "Read", given, output) for given, output in self.known]
        steps += [("worker", "Bash", given, output) for given, output in BETWEEN]
        steps += [("worker", "Ask", self.asked, self.reply)] * ROUNDS
        return [
            told,
            *(
                build("entry", self.name, format_time(START + 1 + number), id=entry_id(self.name, number), agent=agent,
                      action=action, inputType="text", input=given, status="ok", output=output)
                for number, (agent, action, given, output) in enumerate(steps)
            ),
        ]  # fmt: skip


def entry_id(session: str, number: int) -> str:
    """Return the id of a run's entry of that number."""
    return f"{session}-{number}"


def write(place: Path, histories: Sequence[History]) -> Path:
    """Write the runs into a new store and return its path."""
    store = open_store(str(place), create=True)
    try:
        for history in histories:
            store.append(history.records())
    finally:
        store.close()
    return place


HISTORIES: tuple[History, ...] = (
    History(
        "port", "Point the dashboard at the staging database.",
        [("deploy/staging.yaml", "staging database: host db-7, port 6543"), ("README.md", "Run make to build the dashboard.")],
        "Which port does the staging database listen on?", "I do not know.", 0, "same",
    ),
    History(
        "deadline", "Write the announcement of the release.",
        [("notes/kickoff.md", "We go live on the 14th of March."), ("notes/lunch.md", "Pizza was ordered for twelve.")],
        "What is the deadline of the release?", "No date is known to me.", 0, "other",
    ),
    History(
        "owner", "Get the payment change approved.",
        [("CODEOWNERS", "docs/ is looked after by Ines"), ("wiki/teams", "Whatever touches invoices, Marek signs off."),
         ("wiki/rooms", "The blue room has a projector.")],
        "Who approves changes to billing code?", "Nobody is listed here.", 1, "other",
    ),
    History(
        "flag", "Turn the new search on for testers.",
        [("src/flags.py", "The feature flag of the new search is SEARCH_V2."), ("src/search.py", "def search(query): ...")],
        "What is the name of the feature flag of the new search?", "No such flag.", 0, "same",
    ),
    History(
        "encoding", "Import the customers' spreadsheet.",
        [("mail/2026-01-10", "The attachment came from Osaka."),
         ("mail/2026-01-12", "Their export writes Shift-JIS, not UTF-8."), ("mail/2026-01-13", "Thanks, see you on Monday.")],
        "How are the characters of the file to be decoded?", "can't decode byte 0x83", 1, "other",
    ),
    History(
        "retry", "Make the nightly upload reliable.",
        [("logs/upload", "The upload limit is 30 requests a minute."), ("logs/cron", "The job starts at two.")],
        "What is the upload limit in requests a minute?", "429 too many requests", 0, "same",
    ),
    History(
        "password", "Log in to the partner's portal.",
        [("notes/portal.md", "The portal has a blue logo."), ("notes/partner.md", "Our contact is on holiday.")],
        "What is the address of the portal's test system?", "Not found.", None, "none",
    ),
    History(
        "budget", "Order the new test phones.",
        [("mail/phones", "Three models are on the list."), ("mail/desk", "The desks arrive on Friday.")],
        "How much money may be spent on the phones?", "Nothing was said about it.", None, "none",
    ),
)  # fmt: skip
