"""What is noted of a history beside it: read back whole or not at all, moved forward only, and tidied up."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.log import anchor
from ctxmgr.log.anchor import Anchor, advance, anchor_path, encode_anchor, first_session, load, parse_anchor, store, store_empty

TEXT = st.text(max_size=20)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Name a history."""
    path = tmp_path / "run.jsonl"
    path.write_text("x")
    return str(path)


def head(length: int, total: str = "aa", inode: int = 1) -> Anchor:
    """Return how far a history is."""
    return Anchor(length, total, "s", inode)


def held(_: Anchor) -> bool:
    """Say that the history holds whatever an anchor says."""
    return True


@given(st.integers(0, 2**53), TEXT, TEXT, st.integers(0, 2**53), st.text("0123456789abcdef", max_size=16), TEXT)
def test_an_anchor_is_read_back_as_it_was_written(
    length: int, total: str, session: str, inode: int, ends: str, path: str
) -> None:
    """Every member comes back, whatever the session and the path are called."""
    given_ = Anchor(length, total, session, inode)
    given_.ends_digest, given_.path, given_.created = ends, path, "then"
    made = parse_anchor(encode_anchor(given_))

    assert made is not None
    assert {name: getattr(made, name) for name in Anchor.__slots__} == {
        name: getattr(given_, name) for name in Anchor.__slots__
    }
    assert made.has_same_end(given_)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", encode_anchor(head(5))[:-1], b'{"length":"5"}', b'{"length":true}', b'{"length":5,"inode":"1"}',
        b'{"length":5,"sum":7}', b'{"length":5,"ends":"no hex"}', b'{"inode":1}',
    ],
)  # fmt: skip
def test_half_an_anchor_is_none(raw: bytes) -> None:
    """What a power cut may leave, or a hand wrote, is no anchor and no error."""
    assert parse_anchor(raw) is None


def test_an_anchor_moves_forward_alone(log: str) -> None:
    """Another process may be ahead: its anchor stays, and the history counts as noted all the same."""
    assert advance(log, head(10), held)
    assert advance(log, head(20, "bb"), held)
    assert advance(log, head(10), held)

    found = load(log)
    assert found is not None
    assert (found.length, found.total, found.session, found.path) == (20, "bb", "s", os.path.realpath(log))


def test_what_the_history_contradicts_stays(log: str) -> None:
    """Who goes on writing must not hide that something was cut or rewritten."""
    advance(log, head(10), held)

    assert not advance(log, head(30, "cc"), lambda _: False)
    found = load(log)
    assert found is not None
    assert (found.length, found.total) == (10, "aa")


def test_a_file_that_was_begun_anew_is_another_history(log: str) -> None:
    """Where the writer found it empty, the anchor of another file is of one that is gone; that of the same is not."""
    advance(log, head(100, inode=1), held)

    assert advance(log, head(5, inode=1), lambda _: False, is_new=True) is False
    assert advance(log, head(5, "dd", inode=2), lambda _: False, is_new=True)
    found = load(log)
    assert found is not None
    assert (found.length, found.inode) == (5, 2)


def test_when_a_history_was_begun_is_kept(log: str) -> None:
    """The first anchor says it; each one that follows keeps it."""
    store_empty(log)
    first = load(log)
    assert first is not None
    assert (first.length, first.created != "") == (0, True)

    advance(log, head(10), held)
    later = load(log)
    assert later is not None
    assert (later.length, later.created) == (10, first.created)


def test_a_link_and_its_target_have_one_anchor(log: str, tmp_path: Path) -> None:
    """However the history is named, its anchor is the same; another path has another one."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(log)

    assert anchor_path(str(link)) == anchor_path(log) == anchor_path(os.path.join(str(tmp_path), ".", "run.jsonl"))
    assert anchor_path(str(tmp_path / "other.jsonl")) != anchor_path(log)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_no_anchor(make: Callable[[str], None], log: str) -> None:
    """Nobody waits for a pipe in its place."""
    Path(anchor.anchor_folder()).mkdir(parents=True)
    make(anchor_path(log))

    assert load(log) is None


def test_where_no_anchor_can_be_kept_it_is_said(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that can't be written is no error: the caller learns that nothing was noted."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")

    assert not store(log, head(5))
    assert load(log) is None


def test_anchors_of_histories_that_are_gone_are_removed_when_they_are_old(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is young, or whose history is there, stays; what can't be read is removed once it is old."""
    where = Path(anchor.anchor_folder())
    gone = tmp_path / "gone.jsonl"
    for path in (log, str(gone), str(tmp_path / "young.jsonl")):
        store(path, head(5))
    (where / "rubbish").write_text("{")
    old = 1_000_000_000
    for place in (anchor_path(log), anchor_path(str(gone)), str(where / "rubbish")):
        os.utime(place, (old, old))

    monkeypatch.setattr(
        anchor, "anchor_path", {str(tmp_path / "new.jsonl"): str(where / "ab00")}.__getitem__
    )  # one new history in 256 tidies up
    store(str(tmp_path / "new.jsonl"), head(1))
    monkeypatch.undo()
    left = {path.name for path in where.iterdir()}
    assert left == {Path(anchor_path(log)).name, Path(anchor_path(str(tmp_path / "young.jsonl"))).name, "ab00"}


@pytest.mark.parametrize(
    ("begins", "session"),
    [
        (b'{"v":1,"kind":"entry","session":"s1","id":"a"}\n', "s1"),
        (b'\0\0\n{"v":1,"session":"a\\u00e9\\"b"', 'aé"b'),
        (b'{"v":1,"session":"cut', ""),
        (b'{"v":1}', ""),
        (b"\xff\xfe", ""),
        (b"", ""),
    ],
)
def test_the_session_of_the_first_record_is_read_off_the_beginning(begins: bytes, session: str) -> None:
    """Whatever a log begins with, it is found without decoding a record, or said to be unknown."""
    assert first_session(begins) == session
