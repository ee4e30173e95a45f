"""Which facts are told first, in what words, and how short the rest is kept."""

from __future__ import annotations

from ctxmgr.store import Store
from tests.recover.runs import ask, call, ping_pong, recover, said


def test_the_other_side_of_a_to_and_fro(store: Store) -> None:
    """What the other agent answers again and again is told before all else about the trouble, as it was said."""
    store.append([said("pong", 0, "Ship the notes"), *ping_pong()])
    found = recover(store)
    told = [fact.whole for fact in found.context.facts]

    assert any(text.startswith("In between, more than once") for text in told[:2])


def test_what_was_replaced_is_not_told(store: Store) -> None:
    """A value that was looked up again and has changed stands nowhere in the context but as replaced."""
    for number, port in ((0, 8101), (1, 8202)):
        store.append(call("s", number, "Bash", {"command": "show checkout"}, f"checkout listens on port {port}", agent="scout"))
    found = ask(store, reason="I do not know on which port checkout listens").context

    assert "8202" in found.prompt
    assert "8101" not in found.prompt
    assert "which replaces an older answer" in found.prompt
    assert "replaces what @0 shows" in found.brief


def test_the_reviewer_is_told_what_lies_behind(store: Store) -> None:
    """Who reviews is given what was found out about the thing under review, and not only the change."""
    for number in range(8):
        store.append(call("s", number, "Read", {"file_path": f"src/m{number}.py"}, f"def part_{number}(): ..."))
    measured = "batch 900: p95 7100 ms\nbatch 150: p95 48 ms"
    store.append(call("s", 8, "Bash", {"command": "python bench/ingest.py"}, measured, agent="scout"))
    edit = {"file_path": "src/ingest.py", "old_string": "batch = 900", "new_string": "batch = 150"}
    store.append(call("s", 9, "Edit", edit, "updated"))
    store.append(call("s", 10, "Send", {"to": "critic", "text": "please review: src/ingest.py uses batch = 150"}, "ok"))
    store.append(call("s", 11, "Read", {"file_path": "src/ingest.py"}, "batch = 150", agent="critic"))
    found = ask(store, requester="critic", review=True, reason="I need to know how slow it was before", goal="approve or not")

    assert "7100 ms" in found.context.prompt
