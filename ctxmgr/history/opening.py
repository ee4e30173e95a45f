"""Open the history that is meant: the one that was named, the one that is there, or an empty one in its place."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.store import empty_store, exists, open_store

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from ctxmgr.store import DamagedRange, Store
    from ctxmgr.store.log_file import Progress

NOTHING_YET = "no history here yet: 'ctxmgr import' reads the logs on this machine"


def open_history(
    path: str,
    *,
    explicit: bool,
    create: bool = False,
    readonly: bool = False,
    masked: bool = True,
    progress: Progress | None = None,
) -> tuple[Store, list[str]]:
    """Return the store and what a person should hear about it.

    Args:
        path: of the store.
        explicit: somebody named it. One that nobody named and that is not there is read as an empty one.
        create: make it when it is not there.
        readonly: refuse to write; never migrates the store.
        masked: mask secrets in what is written.
        progress: hears of long indexing.

    Raises:
        NotFound: a store was named and is not there.
        CtxmgrError: it can't be opened.
    """
    if not create and not explicit and not exists(path):
        return empty_store(path), [NOTHING_YET]
    store = open_store(path, create=create, readonly=readonly, masked=masked, progress=progress)
    try:
        return store, _heard(store.damage())
    except BaseException:
        store.close()
        raise


def _heard(damage: list[DamagedRange]) -> list[str]:
    warnings = [f"damaged: {item.length:,} bytes at offset {item.offset:,}: {item.reason}" for item in damage[:5]]
    if (more := len(damage) - 5) > 0:
        warnings.append(f"{more} more damaged ranges; 'ctxmgr verify' lists them all")
    return warnings


def check_asking(agent: str) -> None:
    """Refuse a name by which rules mean something else than an agent.

    Raises:
        InvalidInput: it is one.
    """
    from ctxmgr.access.patterns import check_agent
    from ctxmgr.access.resources import PROJECT_OWNER, USER

    if check_agent(agent) in (USER, PROJECT_OWNER):
        raise InvalidInput(f"no agent can be called {agent!r}: the rules mean something else by it", "name the agent")
