"""Verdicts that are kept: the same answers to the byte, and an end to each when anything changes that it follows from."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ctxmgr.config import Config
from ctxmgr.detect import monitor
from ctxmgr.history import detection, verdict_cache
from ctxmgr.history.ingest import import_logs
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.log.ids import format_time
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import disposable_files
from ctxmgr.store.repositories.bookkeeping import FileState
from ctxmgr.types.operations import DetectRequest, SessionsRequest
from ctxmgr.workspace import Workspace
from tests.builders import START, at, build, entry, result, write
from tests.cli.console import run
from tests.history.seen_world import rules

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOOP = ["Read:a", *["!Bash:make -> no rule to make it"] * 4]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a store with a session in a loop, one that is well, and one that stopped inside a call."""
    path = tmp_path / "history.db"
    with closing(open_store(str(path), create=True)) as store:
        write(store, "stuck", LOOP)
        write(store, "well", ["Read:a", "Edit:b"])
        write(store, "open", ["Read:a", "?Bash:sleep"])
    return path


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the sessions that detectors see."""
    seen: list[str] = []
    made = monitor.Monitor

    class Watched(made):
        """A monitor that tells which session it is shown."""

        def observe_all(self, observations: Any) -> None:
            super().observe_all(observations)
            seen.append(self._session)

    monkeypatch.setattr(monitor, "Monitor", Watched)
    return seen


def answers(store: Store, settings: dict[str, Any] | None = None) -> tuple[str, str, list[str]]:
    """Return the list of sessions and the verdicts as JSON, and the ids of the entries that are shown with them."""
    workspace = Workspace(store, Config(detect=settings or {}))
    listed = workspace.sessions(SessionsRequest(limit=500))
    found = workspace.detect(DetectRequest(all_sessions=True))
    return json.dumps(listed.to_json()), json.dumps([found.to_json()["verdicts"], found.notes]), sorted(found.entries)


def asked(place: Path, settings: dict[str, Any] | None = None) -> tuple[str, str, list[str]]:
    """Return the same of the store at a path."""
    with closing(open_store(str(place), readonly=True)) as store:
        return answers(store, settings)


@pytest.mark.slow
def test_answer_cache_are_those_of_a_judgement_over_all_fixtures(tmp_path: Path, judged: list[str]) -> None:
    """Over every log of the fixtures the second answer is the first one to the byte, and no detector has seen a record."""
    with closing(open_store(str(tmp_path / "history.db"), create=True)) as store:
        import_logs(store, [FIXTURES], home=tmp_path, environment={})
        count = store.sessions.count()
        fresh = answers(store)
        assert count > 50
        assert len(judged) >= 2 * count
        judged.clear()
        assert answers(store) == fresh
        assert judged == []


@pytest.mark.parametrize("words", ["sessions", "sessions --stuck", "detect --all-sessions", "detect -s stuck"])
@pytest.mark.parametrize("form", ["json", "ndjson", "table"])
def test_a_command_says_the_same_of_what_is_kept(words: str, form: str, place: Path, judged: list[str]) -> None:
    """Output, talk and exit code are the same, for programs and people, from a log too."""
    arguments = (*words.split(), "--format", form, "--store", str(place))
    fresh = run(*arguments)
    assert judged
    judged.clear()
    assert run(*arguments) == fresh
    assert judged == []


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_only_what_has_changed_is_judged_anew(kind: str, tmp_path: Path, judged: list[str]) -> None:
    """A record in one session ends what is kept of it; causes, which other sessions may show, are sought anew after any."""
    path = tmp_path / ("history.db" if kind == "sqlite" else "history.jsonl")
    with closing(open_store(str(path), create=True)) as store:
        write(store, "stuck", LOOP)
        write(store, "well", ["Read:a", "Edit:b"])
    asked(path)
    judged.clear()
    with closing(open_store(str(path))) as store:
        store.append([entry("well", 2, "Bash", "ls"), result("well", 2, "a.txt")])
    listed, verdicts, _ = asked(path)
    assert sorted(judged) == ["stuck", "well", "well"]
    assert '"entries": 3' in listed
    assert "loop" in verdicts


@pytest.mark.parametrize("more", ["note", "continuation"])
def test_annotations_end_it_too(more: str, place: Path, judged: list[str]) -> None:
    """What is no action counts as well: the list shows the number of notes, and a continuation may answer a loop."""
    asked(place)
    judged.clear()
    fields: dict[str, Any] = {"entries": ["well-e0000"], "content": "x", "tags": []} if more == "note" else {"answers": []}
    with closing(open_store(str(place))) as store:
        store.append([build(more, "well", at(60), id="more", **fields)])
    assert ('"notes": 1' in asked(place)[0]) is (more == "note")
    assert judged.count("well") == 2


def test_other_settings_and_other_programs_judge_anew(place: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold, or the program's version or code, is part of what a verdict follows from."""
    asked(place)
    judged.clear()
    assert '"loop"' not in asked(place, {"disabled": ["repetition", "errorRepetition"]})[0]
    assert len(judged) == 6
    for name, value in (("__version__", "0.0.1"), ("_checkout_state", lambda: [1, 2, 3])):
        monkeypatch.setattr(verdict_cache, name, value)
        judged.clear()
        asked(place)
        assert len(judged) == 6, name


def test_a_running_session_is_judged_each_time(tmp_path: Path, judged: list[str]) -> None:
    """While a recorder holds a session open the clock counts: nothing is kept of it, and nothing kept is told of it."""
    path = tmp_path / "history.jsonl"
    with Recorder(path, session="s") as recorder:
        recorder.result(recorder.entry("coder", "Read", {"path": "a"}), output="text")
        for _ in range(2):
            judged.clear()
            asked(path)
            assert len(judged) == 2
    asked(path)
    judged.clear()
    asked(path)
    assert judged == []
    with Recorder(path, session="s"):
        asked(path)
        assert len(judged) >= 2


def test_an_imported_session_may_begin_to_run_again(place: Path, tmp_path: Path, judged: list[str]) -> None:
    """A log that is written to again makes its session a running one, though no record is new yet."""
    log = tmp_path / "s.jsonl"
    log.write_text("{}\n")
    with closing(open_store(str(place))) as store:
        now = store.clock()
        store.append([{**entry("fresh", 0, "Read", "a"), "ts": format_time(now - 5)}])
        store.imported.remember(log, "claude-code", FileState.read(log), "fresh", {"damaged": []})
        os.utime(log, (now - 2000, now - 2000))
        answers(store)
        judged.clear()
        answers(store)
        assert judged == []
        os.utime(log, (now, now))
        answers(store)
        assert "fresh" in judged


def test_a_named_moment_is_never_answered_from_what_is_kept(place: Path, judged: list[str]) -> None:
    """Stalls are judged against the moment that was named."""
    with closing(open_store(str(place), readonly=True)) as store:
        for hours, verdict in ((0, "healthy"), (2, "hung")):
            request = DetectRequest(session="open", now=format_time(START + hours * 3600 + 2))
            for _ in range(2):
                judged.clear()
                assert detection.detect_(store, request, {}).verdicts[0].verdict == verdict
                assert judged == ["open"]


def _only(folder: Path) -> Path:
    (found,) = folder.glob("ctxmgr/answers/*.db")
    return found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.mark.cases(1)
@pytest.mark.parametrize("harm", ["garbage", "flip", "value", "empty"])
def test_what_is_damaged_is_ignored(harm: str, place: Path, cache: Path, judged: list[str]) -> None:
    """Whatever happens to the file, the answers are those of a judgement, and are kept again."""
    fresh = asked(place)
    kept = _only(cache)
    whole = kept.read_bytes()
    if harm == "value":
        from ctxmgr.store.engine.sqlite import SqliteEngine

        with closing(SqliteEngine(str(kept))) as engine:
            assert engine.execute("UPDATE kept SET value = replace(value, 'loop', 'warn')") > 0
    else:
        changed = {"garbage": b"\x01" * len(whole), "flip": whole.replace(b"loop", b"lOOp"), "empty": b""}[harm]
        kept.write_bytes(changed)
    judged.clear()
    assert asked(place) == fresh
    assert judged
    asked(place)
    judged.clear()
    assert asked(place) == fresh
    assert judged == []


@pytest.mark.parametrize("odd", ["link", "shared"])
def test_a_folder_that_is_not_the_users_alone_is_not_used(
    odd: str, place: Path, cache: Path, tmp_path: Path, judged: list[str]
) -> None:
    """What others could have put there, or led elsewhere, is neither read nor written."""
    asked(place)
    folder = cache / "ctxmgr" / "answers"
    if odd == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.chmod(0o777)
    for _ in range(2):
        judged.clear()
        asked(place)
        assert len(judged) == 6


def test_what_an_agent_may_see_is_never_kept(place: Path, cache: Path, judged: list[str]) -> None:
    """A part of a history that access rules choose is judged each time."""
    for _ in range(2):
        judged.clear()
        with closing(FilteredStore(open_store(str(place)), "coder", rules(("*", "read"), agent="coder"))) as seen:
            answers(seen)
        assert len(judged) == 2 * 3
    assert list(cache.glob("ctxmgr/answers/*")) == []


def test_a_cache_that_cannot_be_written_changes_nothing(
    place: Path, cache: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a folder in the place of a file, costs time and no answer."""
    fresh = asked(place)
    kept = _only(cache)
    kept.unlink()
    kept.mkdir()
    judged.clear()
    assert asked(place) == fresh
    assert judged


def test_the_file_stays_within_its_limit(place: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no more fits in, all of it goes; what is asked next is kept again."""
    monkeypatch.setattr(disposable_files, "MOST_BYTES", 1 << 17)
    with closing(open_store(str(place), readonly=True)) as store:
        for number in range(40):
            kept = disposable_files.AnswerCache(store.engine, whole=True)
            kept.put([(f"name {number}", "mark", "x" * 9000)])
            kept.close()
            assert sum(path.stat().st_size for path in cache.glob("ctxmgr/answers/*")) <= 1 << 18
        kept = disposable_files.AnswerCache(store.engine, whole=True)
        kept.put([("last", "mark", "text")])
        assert (kept.get("last", "mark"), kept.get("last", "other"), kept.get("none", "mark")) == ("text", None, None)
        kept.close()


def test_a_verdict_that_took_in_more_than_was_marked_is_found_under_no_mark(place: Path, judged: list[str]) -> None:
    """What is recorded while a session is judged belongs to the next mark."""
    with closing(open_store(str(place))) as store:
        key = store.sessions.key("well")
        assert key is not None
        kept = verdict_cache.VerdictCache(store, {})
        assert kept.verdict(key, "well") is None
        store.append([entry("well", 2, "Bash", "ls")])
        kept.keep_verdict(key, "well", {"verdict": {"findings": []}, "notes": []})
        kept.close()
        assert verdict_cache.VerdictCache(store, {}).verdict(key, "well") is None


def test_settings_that_json_cannot_hold_keep_nothing(place: Path) -> None:
    """A table with a value of another kind is judged by, and nothing is kept under it."""
    with closing(open_store(str(place), readonly=True)) as store:
        kept = verdict_cache.VerdictCache(store, {"poll_gap": float("inf")})
        key = store.sessions.key("well")
        assert key is not None
        kept.keep_row(key, "well", {})
        assert kept.row(key, "well") is None
        kept.close()


def test_what_verdicts_add_up_to() -> None:
    """A loop here and a hang there are both; a warning is told where nothing is worse."""
    assert verdict_cache.worst_verdict([]) == "healthy"
    assert verdict_cache.worst_verdict(["healthy", "warn"]) == "warn"
    assert verdict_cache.worst_verdict(["warn", "hung"]) == "hung"
    assert verdict_cache.worst_verdict(["loop", "healthy", "hung"]) == "loop+hung"
    assert verdict_cache.worst_verdict(["loop+hung", "loop"]) == "loop+hung"
    assert verdict_cache.worst_verdict(["loop", "warn"]) == "loop"


def test_nothing_is_judged_to_answer_a_program_from_what_is_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path neither builds a model nor asks the workspace where every verdict is kept."""
    from ctxmgr.cli.fast.dispatch import answer_command
    from ctxmgr.cli.fast.rows import OpenedStore

    lines = [["sessions", "--json"], ["detect", "--all-sessions", "--json"], ["detect", "-s", "stuck", "--json"]]
    lines = [[*line, "--store", str(place)] for line in lines]
    codes = [answer_command(line) for line in lines]

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a workspace was made")

    monkeypatch.setattr(OpenedStore, "workspace", property(refuse))
    assert [answer_command(line) for line in lines] == codes == [0, 12, 10]
