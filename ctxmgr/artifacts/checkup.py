"""Can every artifact of a store be got, and does its folder show what the history says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from ctxmgr.artifacts.healing import audit
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import open_store
from ctxmgr.types.base import Json
from ctxmgr.types.health import Check

_NAME = "store.artifacts"
_MOST = 20


def check_artifacts(location: str) -> Iterator[Check]:
    """Yield what is found about the artifacts of the store at a path; nothing where it never had any.

    Every content is read and verified; nothing is written.
    """
    try:
        with closing(open_store(location, readonly=True)) as store:
            versions = store.artifacts.versions()
            if not versions:
                return
            faults = [f"{fault.what} {fault.reason}" for fault in audit(store)]
            current = store.artifacts.current()
    except CtxmgrError as error:
        yield Check(name=_NAME, level="fail", finding=error.message, hint=error.hint, kind=error.kind)
        return
    detail: dict[str, Json] = {"versions": len(versions), "current": current, "faults": faults[:_MOST]}
    if not faults:
        finding = f"versions: {len(versions):,}, every content verified"
        yield Check(name=_NAME, level="ok", finding=finding, detail=detail)
        return
    yield Check(
        name=_NAME, level="fail", kind="damaged", finding=f"{len(faults):,} damaged: {faults[0]}", detail=detail,
        hint="content comes back when the same file is put again; a version's folder, once removed, with the next change",
    )  # fmt: skip
