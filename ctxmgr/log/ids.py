"""Create UUIDv7 ids; parse and format timestamps.

Standard library only: the recorder is built on this module.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timezone
else:
    try:
        from _datetime import datetime, timezone  # the C classes of `datetime`, without importing the rest of it
    except ImportError:
        from datetime import datetime, timezone

UTC = timezone.utc  # noqa: UP017
# One day inside the range of Python's datetime, so that any time zone can be applied.
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_LATEST = datetime(9999, 12, 30, tzinfo=UTC)


_STOCK_SIZE = 256
# Tables for `bytes.translate`, with which one call in C sets the bits of RFC 9562 in a whole stock of ids.
_VERSION = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))

# Texts of the latest millisecond and second. Each tuple is replaced as a whole, so threads need no lock.
_head = (-1, "")
_second = (-1, "")
_both = (-1, "", "")
_micros: dict[int, str] = {}
# A stock of random parts of ids. One system call for each id would take half of its time.
_tails: list[str] = []
# Without this, a forked child would use the same random parts as its parent.
os.register_at_fork(after_in_child=_tails.clear)


def new_id(milliseconds: int | None = None) -> str:
    """Return a UUIDv7 (RFC 9562): sortable by its first 48 bits, milliseconds since 1970."""
    global _head
    stamp = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    head = _head
    if head[0] != stamp:
        _head = head = (stamp, _time_part(stamp))
    try:
        return head[1] + _tails.pop()
    except IndexError:
        return head[1] + _new_tail()


def _time_part(stamp: int) -> str:
    text = f"{stamp & (1 << 48) - 1:012x}"
    return f"{text[:8]}-{text[8:]}-"


def _new_tail() -> str:
    # Build the whole stock as columns of bytes. One by one would take half of an id's time.
    marked = bytearray(os.urandom(4 * _STOCK_SIZE))
    marked[::4] = marked[::4].translate(_VERSION)
    marked[2::4] = marked[2::4].translate(_VARIANT)
    middles, ends = marked.hex("-", 2) + "-", os.urandom(6 * _STOCK_SIZE).hex("-", 6).split("-")
    first, *others = [middles[10 * number : 10 * number + 10] + end for number, end in enumerate(ends)]
    _tails.extend(others)
    return first


def now() -> str:
    """Return the current time as RFC 3339 in UTC with microseconds, ending in ``Z``."""
    moment = time.time_ns() // 1_000
    second = moment // 1_000_000
    return f"{_format_second(second)}{moment - second * 1_000_000:06d}Z"


def new_id_and_time() -> tuple[str, str]:
    """Return a new id and the current time, like `new_id` and `now`, reading the clock once."""
    global _both
    moment = time.time_ns() // 1_000
    stamp = moment // 1_000
    both = _both
    if both[0] != stamp:
        second = stamp // 1_000
        _both = both = (stamp, _time_part(stamp), f"{_format_second(second)}{stamp - second * 1_000:03d}")
    try:
        tail = _tails.pop()
    except IndexError:
        tail = _new_tail()
    rest = moment - stamp * 1_000
    micros = _micros.get(rest)
    if micros is None:
        micros = _micros[rest] = f"{rest:03d}Z"
    return both[1] + tail, both[2] + micros


def _format_second(second: int) -> str:
    global _second
    present = _second
    if present[0] != second:
        # Up to the decimal point behind the seconds.
        _second = present = (second, format_time(second)[:20])
    return present[1]


def format_time(seconds: float) -> str:
    """Return ``seconds`` since 1970 as RFC 3339 in UTC.

    Raises:
        ValueError, OverflowError: the time is outside the years 1 to 9999.
    """
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    except OSError as error:  # the time is outside the range of the system's calendar
        raise ValueError(f"{seconds!r} is no moment: {error.strerror}") from None
    return text.replace("+00:00", "Z")


def time_or_none(seconds: float) -> str | None:
    """Return ``seconds`` since 1970 like `format_time`; None outside the years 1 to 9999."""
    try:
        return format_time(seconds)
    except (ValueError, OverflowError):
        return None


def parse_time(text: object) -> float | None:
    """Return seconds since 1970 for an RFC 3339 or ISO 8601 text, or None for anything else.

    A time without a zone counts as UTC. Never raises, because recorded timestamps are hostile input.
    """
    # The C parser accepts any character between day and time, even a NUL or a line end.
    if not isinstance(text, str) or len(text) > 64 or not (text.isascii() and text.isprintable()):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        # At either end, a time zone may move the time out of the years that Python supports.
        if not 1 < moment.year < 9999 and not _EARLIEST <= moment <= _LATEST:
            return None
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None
