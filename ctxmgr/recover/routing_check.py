"""Can the routing table that the configuration names be used: read it as a recovery would, and say what it holds."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.config import Config
from ctxmgr.errors import CtxmgrError
from ctxmgr.recover.routes import configured
from ctxmgr.types.health import Check


def check_routes(config: Config) -> Check:
    """Say which routing table a recovery would go by, or why it can't."""
    where = config.routes if isinstance(config.routes, Path) else config.file_of("recover.routes")
    if config.routes is None:
        finding = "no routing table: who may follow whom is read off each history"
        return Check(name="routes", level="info", finding=finding, detail={"path": None, "agents": 0})
    try:
        table = configured(config)
        assert table is not None, "there are routes"
    except CtxmgrError as error:
        detail = {"path": str(where), "agents": 0}
        return Check(name="routes", level="fail", finding=error.message, hint=error.hint, kind=error.kind, detail=detail)
    detail = {"path": str(where), "agents": len(table.routes)}
    return Check(name="routes", level="ok", finding=f"{where}: agents named: {len(table.routes):,}", detail=detail)
