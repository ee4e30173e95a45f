"""Times as people write them: RFC 3339, ``2h``, ``7d``, ``yesterday``."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ctxmgr.errors import InvalidInput
from ctxmgr.log.ids import format_time, parse_time

_AGO = re.compile(r"(\d{1,7})\s?(s|m|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment(text: str | None, now: float) -> str | None:
    """Return RFC 3339 for a time as people write it; "2h" means two hours before ``now``.

    Raises:
        InvalidInput: it is not a time.
    """
    if text is None:
        return None
    wanted = text.strip().lower()
    if wanted == "now":
        return format_time(now)
    if match := _AGO.fullmatch(wanted):
        return format_time(max(0.0, now - int(match[1]) * _SECONDS[match[2]]))
    if wanted in ("today", "yesterday"):
        midnight = datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        return format_time((midnight - timedelta(days=1 if wanted == "yesterday" else 0)).timestamp())
    if (seconds := parse_time(text.strip())) is not None:
        return format_time(seconds)
    raise InvalidInput(f"{text!r} is not a time", "e.g. 2h, 7d, yesterday, 2026-01-22T10:00:00Z")
