"""Agents that wait for a file each: by calls that look for it, or as each said."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, evidence


def _wait(agent: str, file: str, call: str = "until [ -s {} ]; do sleep 1; done") -> Call:
    """Return a call of an agent that waits for a file in vain."""
    return Call(
        "Bash", {"command": call.format(file)}, f"cannot access '{file}': No such file or directory", "error", agent=agent
    )


def _answer(*steps: Call | Said) -> Diagnosis | None:
    told = diagnose(evidence(*steps, loop=6))
    return told if told is not None and told.kind == "mutualWait" else None


_RING = [_wait("planner", "schema.sql"), _wait("builder", "engine.txt")] * 3


def test_two_that_wait_for_files_of_each_other_are_told_which() -> None:
    """Neither file can come, because each agent does nothing else."""
    told = _answer(*_RING)

    assert told is not None
    assert "builder only waits for `engine.txt` and planner only for `schema.sql`" in told.cause
    assert told.next_step.startswith("End the wait: make `schema.sql` yourself now")


def test_a_file_that_is_looked_for_is_awaited_if_the_user_named_it() -> None:
    """A look in vain at any other file may only have a wrong name."""
    looks = [_wait("planner", "schema.sql", "cat {}"), _wait("builder", "engine.txt", "cat {}")] * 3

    assert _answer(Said("Planner makes engine.txt, builder makes schema.sql."), *looks) is not None
    assert _answer(Said("Planner and builder make the prototype."), *looks) is None


def test_agents_of_which_one_goes_on_are_no_circle() -> None:
    """One does something else in between, finds its file, or waits for the same file as the other."""
    found = Call("Bash", {"command": "until [ -s engine.txt ]; do sleep 1; done"}, "", agent="builder")
    assert _answer(*_RING[:-1], found) is None
    assert _answer(*_RING[:-1], Call("Bash", {"command": "ls docs"}, "a.md", agent="builder")) is None
    assert _answer(*[_wait("planner", "schema.sql"), _wait("builder", "schema.sql")] * 3) is None


RULE = Said("sampler draws, coder codes. The old guide (docs/guide_a.md) may be used for the first hundred.")
GUIDE = Said("I start drawing as soon as coder has published docs/guide_b.md.", "sampler")
SAMPLE = Said("I write the guide when sampler's hundred are in data/sample.csv.", "coder")


def _look(agent: str, command: str, said: str = "none") -> Call:
    return Call("Bash", {"command": command}, said, agent=agent)


_LOOKS = [_look("sampler", "test -f docs/guide_b.md && echo there || echo none"), _look("coder", "ls data", "raw.csv")]
_WATCHES = [
    Call("Bash", {"command": "inotifywait -e create docs"}, status="open", agent="sampler"),
    Call("Bash", {"command": "inotifywait -e create data"}, status="open", agent="coder"),
]


def _promised(*steps: Call | Said) -> Diagnosis | None:
    told = diagnose(evidence(*steps, found=False))
    return told if told is not None and told.kind == "mutualWait" else None


def test_two_that_wait_for_what_the_other_has_promised_are_told_what_the_user_allows() -> None:
    """Both files are named, and the user's words say who need not wait."""
    told = _promised(RULE, GUIDE, SAMPLE, *_LOOKS, *_WATCHES)

    assert told is not None
    assert "docs/guide_b.md" in told.cause
    assert "data/sample.csv" in told.cause
    assert (
        "sampler need not wait for `docs/guide_b.md`, and can make `data/sample.csv` now with `docs/guide_a.md`"
        in told.next_step
    )


def test_without_a_word_of_the_user_one_file_is_made_first() -> None:
    """A ban, or words about the awaited file itself, allow nothing."""
    for rule in ("Make the corpus.", "The old guide docs/guide_a.md may not be used.", "docs/guide_b.md can be short."):
        told = _promised(Said(rule), GUIDE, SAMPLE, *_LOOKS, *_WATCHES)

        assert told is not None
        assert told.next_step.startswith("End the wait: make "), told.next_step


def test_agents_of_which_one_can_go_on_do_not_wait_for_each_other() -> None:
    """One works, has its file, looks elsewhere, or waits for no file of the other."""
    write = Call("Write", {"file_path": "docs/guide_b.md", "content": "# b"}, "ok", agent="coder")
    for steps in (
        [GUIDE, SAMPLE, *_LOOKS, write, *_WATCHES],
        [GUIDE, SAMPLE, *_LOOKS, _look("sampler", "ls docs", "guide_a.md guide_b.md"), *_WATCHES],
        [GUIDE, SAMPLE, _LOOKS[0], _WATCHES[0], *[_look("coder", "ls attic", "old")] * 2],
        [GUIDE, SAMPLE, _LOOKS[0], _WATCHES[0], *[_look("coder", "python3 label.py", "3 done")] * 2],
        [GUIDE, Said("I write the guide when Ms. Wu has sent data/sample.csv.", "coder"), *_LOOKS, *_WATCHES],
        [GUIDE, *_LOOKS, *_WATCHES],
    ):
        assert _promised(RULE, *steps) is None, steps
