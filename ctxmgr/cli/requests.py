"""Build requests from option values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from ctxmgr.cli.envelope import tell_session as tell
from ctxmgr.cli.times import moment
from ctxmgr.errors import InvalidInput
from ctxmgr.types.base import first_fault

if TYPE_CHECKING:
    from ctxmgr.types.base import Shape
    from ctxmgr.workspace import Workspace

_Request = TypeVar("_Request", bound="Shape")


def build(request: type[_Request], **values: Any) -> _Request:
    """Return a request from option values; options that were not given are left out.

    Raises:
        InvalidInput: naming the first value that can't be used.
    """
    given = {name: value for name, value in values.items() if value is not None}
    for name in ("since", "until"):
        if name in given:
            given[name] = moment(given[name], time.time())
    try:
        return request.model_validate(given)
    except ValueError as error:
        first = first_fault(error)
        name = "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else "the request"
        raise InvalidInput(f"{name}: {first['msg']}", f"given: {first['input']!r}") from None


def tell_session(workspace: Workspace, asked: str | None, used: str | None) -> None:
    """Say on stderr which session was meant, when none was named and there are several."""
    tell(workspace.store, asked, used)
