"""Cache the answer of a recovery until something is recorded in the store or a setting changes."""

from __future__ import annotations

import os

from ctxmgr.base.paths import settings_files, user_file
from ctxmgr.history.query.address import session_key
from ctxmgr.history.verdict_cache import VerdictCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.cli.output import Answer
    from ctxmgr.config import Config
    from ctxmgr.types.operations import RecoverRequest, RecoverResponse
    from ctxmgr.workspace import Workspace

_VARIABLES = "CTXMGR_"
_HARMLESS = frozenset({"CTXMGR_STORE", "CTXMGR_FORMAT", "CTXMGR_PAGER", "CTXMGR_DEBUG", "CTXMGR_WATCH"})
"""Variables of ctxmgr that change no answer. Any other may change it, e.g. by naming a model."""


def find_config() -> Config | None:
    """Return the configuration of the current folder. If there is no file of settings, return None and load nothing."""
    folder = os.getcwd()
    if not os.path.exists(user_file(os.environ)) and next(settings_files(folder), None) is None:
        return None
    from ctxmgr.config import load_config

    return load_config(folder)


def find_settings() -> dict[str, Any] | None:
    """Return the settings that a continuation depends on, or None if some of them are in no file of settings."""
    if any(name.startswith(_VARIABLES) and name not in _HARMLESS for name in os.environ):
        return None
    config = find_config()
    if config is None:
        return {}
    from pathlib import Path

    if config.model or isinstance(config.routes, Path):
        return None
    return {"detect": config.detect, "attempts": config.attempts, "diff": config.diff, "routes": config.routes}


class RecoveryCache:
    """Cache for the answer of one recovery. Create it before the recovery begins, because it notes the state of the store."""

    def __init__(self, workspace: Workspace, request: RecoverRequest) -> None:
        self._workspace, self._request = workspace, request
        self._kept: VerdictCache | None = None
        # Any option may change the answer, so only a request without options is cached.
        plain = request.model_copy(update={"session": None}) == type(request)()
        settings = find_settings() if plain and workspace.agent is None else None
        self._key = None if settings is None else session_key(workspace.store, request.session)
        if settings is not None and self._key is not None:
            self._kept = VerdictCache(workspace.store, settings)
            self._session = workspace.store.sessions.name(self._key)
            # Asked only to note the current state of the store. `keep` stores the answer under that state.
            self._kept.continuation(self._key, self._session)
            self._kept.close()

    def keep(self, found: RecoverResponse, show: Callable[..., Answer], *, prompt: bool) -> Answer:
        """Return what the command prints, and cache the answer in the form of a repetition. ``show`` makes both forms."""
        if self._kept is not None and self._key is not None and found.stored:
            given = found.continuation
            # The number of records that this recovery wrote. If the store has more new ones, somebody else has recorded
            # meanwhile, and the answer is not cached.
            own = 0 if given.told_again else len(given.notes) + (given.snapshot is not None) + 1
            stored = self._workspace.continuation(self._session, given.id)
            again = show(self._workspace, found.model_copy(update={"continuation": stored}), prompt=prompt)
            stored_answer = {"data": again.data, "warnings": again.warnings, "prompt": stored.prompt}
            self._kept.keep_continuation(self._key, self._session, stored_answer, own)
            self._kept.close()
        return show(self._workspace, found, prompt=prompt)
