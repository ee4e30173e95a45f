"""The bench that cuts failed runs at their decisive step: where it cuts, and what it says is needed."""

from __future__ import annotations

from bench.detection.runs import Run, Writer
from bench.recovery.replay import cuts, prompt_at


def _run(name: str, *changes: tuple[str, str], success: bool) -> Run:
    """Return a run that looks up four orders and then changes some."""
    run = Run(name, "shop", task="shop 1", success=success)
    writer = Writer(run)
    for number in range(1, 5):
        entry = writer.call("assistant", "get_order", {"order": f"W-{number}100"}, at=None)
        writer.result(entry, f"order W-{number}100, paid by card_{number}100", failed=False, at=None)
    for action, value in changes:
        writer.result(writer.call("assistant", action, {"payment": value}, at=None), "done", failed=False, at=None)
    return run


def test_a_run_is_cut_before_its_first_wrong_change() -> None:
    """What both runs change stays; the values of what only the successful one changes are needed."""
    good = _run("good", ("cancel", "card_1100"), ("refund", "card_2100"), success=True)
    bad = _run("bad", ("cancel", "card_1100"), ("refund", "card_3100"), ("refund", "card_4100"), success=False)
    (cut,) = cuts([good, bad])

    assert cut.needed == {"card_2100"}
    assert [record["input"]["payment"] for record in cut.records if record.get("action") in ("cancel", "refund")] == [
        "card_1100"
    ]
    assert "card_2100" in prompt_at(cut)


def test_what_nobody_found_is_not_needed() -> None:
    """A value that the failed run had not met by then can't be given, and a task that nobody solved has no right way."""
    bad = _run("bad", ("refund", "card_3100"), success=False)

    assert list(cuts([_run("good", ("refund", "card_9999"), success=True), bad])) == []
    assert list(cuts([bad])) == []
