"""The bytes of a log: followed where another file takes its place, and given out as records or named as damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.log import codec
from ctxmgr.store.engine.log_bytes import DamagedRange, LogBytes

PLAIN = b'{"v":1,"kind":"event","session":"s","id":"a","type":"x"}'


@pytest.fixture
def log(tmp_path: Path) -> LogBytes:
    """Return a log that is not there yet."""
    return LogBytes(str(tmp_path / "h.jsonl"))


def write(log: LogBytes, content: bytes) -> None:
    """Put another file in the place of the log."""
    beside = Path(log.path + ".new")
    beside.write_bytes(content)
    beside.rename(log.path)


def test_another_file_in_its_place_is_followed(log: LogBytes) -> None:
    """Size and bytes are those of the file that stands there now; one that is gone is told by its path."""
    write(log, b"one\n")
    assert (log.follow(), log.read(0, 99)) == (4, b"one\n")
    first = log.identity
    write(log, b"another\n")
    assert log.read(0, 99) == b"one\n"
    assert (log.follow(), log.read(0, 99)) == (8, b"another\n")
    assert log.identity != first

    Path(log.path).unlink()
    with pytest.raises(StorageFailed, match=r"h\.jsonl"):
        log.follow()


def test_a_closed_log_is_not_read(log: LogBytes) -> None:
    """Closing twice is no fault; reading after it is told, and not taken for an empty log."""
    write(log, b"one\n")
    log.follow()
    log.close()
    log.close()

    with pytest.raises(StorageFailed):
        log.read(0, 1)


def test_the_last_whole_line_is_found_however_far_back(log: LogBytes) -> None:
    """A torn end longer than what is read at once is passed over; without a line end nothing is whole."""
    torn = b"x" * 200_000
    write(log, b"one\ntwo\n" + torn)
    size = log.follow()

    assert log.complete_end(0, size) == 8
    assert log.complete_end(0, 5) == 4
    assert log.complete_end(8, size) == 8
    assert (log.next_line(3), log.next_line(1)) == (4, None)


def test_a_sum_tells_what_stands_before_a_place(log: LogBytes) -> None:
    """A log that was written anew behind the same beginning has another one."""
    write(log, b"a" * 10_000 + b"old")
    log.follow()
    before, head = log.digest_before(10_003), log.head()
    write(log, b"a" * 10_000 + b"new")
    log.follow()

    assert log.head() == head
    assert log.digest_before(10_003) != before
    assert log.digest_before(10_000) == codec.digest(b"a" * 4_096)


@pytest.mark.parametrize("raw", [PLAIN, PLAIN.replace(b'"x"', '"é"'.encode()), PLAIN.replace(b",", b" , ")])
def test_a_body_is_the_record_as_it_is_stored(raw: bytes, log: LogBytes) -> None:
    """Without its sum and in ASCII, whoever spelled the line; a line without a sum is spelled anew."""
    line = codec.seal(raw, codec.chain("", raw))
    write(log, b"\n" + line + b"\n" + raw)
    log.follow()
    sealed, plain = log.body(1, len(line)), log.body(len(line) + 2, len(raw))

    assert plain == codec.encode(codec.decode(raw)).decode("ascii")
    assert sealed == (raw.decode() if raw.isascii() else plain)
    assert (log.total(1, len(line)), log.total(len(line) + 2, len(raw))) == (codec.chain("", raw), None)


@pytest.mark.parametrize("raw", [b"{", b"[1]", b"\xff" * 20, b'{"v":1,"data":NaN}', b"[" * 10_000, b""])
def test_what_is_no_record_any_more_is_told(raw: bytes, log: LogBytes) -> None:
    """A log that was changed while it was read is said to be so."""
    write(log, raw)
    log.follow()

    with pytest.raises(StorageFailed, match="was changed while it was read"):
        log.body(0, len(raw))


def test_a_body_is_that_of_the_line_that_stands_there_now(log: LogBytes) -> None:
    """A line that was read and then rewritten in place has the body of its new content."""
    write(log, PLAIN)
    log.follow()
    assert log.body(0, len(PLAIN)) == log.body(0, len(PLAIN)) == PLAIN.decode()
    changed = PLAIN.replace(b'"x"', b'"y"')
    Path(log.path).write_bytes(changed)

    assert log.body(0, len(PLAIN)) == changed.decode()


def test_the_same_damage_is_one() -> None:
    """Ranges are told apart by place, length and reason, whatever kind they are counted as."""
    one = DamagedRange(3, 4, "torn")

    assert {one, DamagedRange(3, 4, "torn", "altered"), DamagedRange(3, 5, "torn")} == {one, DamagedRange(3, 5, "torn")}
    assert one != (3, 4, "torn")
