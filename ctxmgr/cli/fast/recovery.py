"""``recover`` on the fast path: the stored continuation is told again where nothing has happened since.

The same history gives the same answer (ruling 24), so that neither detectors nor the recovery need to be loaded. Only a
request without any option that could change the answer is answered so, see `ctxmgr.cli.told_again`.
"""

from __future__ import annotations

from ctxmgr.cli.fast.answer import Answer
from ctxmgr.cli.told_again import settings_here
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.address import session_key
from ctxmgr.history.verdict_cache import VerdictCache

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.store import Store


def recover(store: Store, values: dict[str, Any]) -> Answer | None:
    """Return the continuation that is told again, or None where the recovery has to look."""
    settings = None if values["now"] else settings_here()
    if settings is None:
        return None
    try:
        key = session_key(store, values["session"])
        session = None if key is None else store.sessions.name(key)
        if key is None or session is None or store.leases.held_until(session, store.clock()) is not None:
            return None
    except CtxmgrError:  # told by the command itself
        return None
    kept = VerdictCache(store, settings)
    try:
        told = kept.continuation(key, session)
    finally:
        kept.close()
    if told is None:
        return None
    answer = Answer(told["data"])
    answer.warnings += told["warnings"]
    answer.draw = lambda out: out.block(told["prompt"])
    return answer
