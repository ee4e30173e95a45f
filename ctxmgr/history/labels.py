"""Read ``labels.json``: what people know about recorded sessions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.files import read_regular
from ctxmgr.types.backtest import Label

LABELS = "labels.json"
_MOST = 64 * 1024 * 1024
_EXAMPLE = 'e.g. [{"session": "run-1", "loop": true}, {"session": "run-2", "loop": false}]'


def read_labels(folder: Path) -> list[Label]:
    """Return the labels of a folder, one a session, in the file's order.

    Raises:
        NotFound: the folder or its ``labels.json`` is not there.
        StorageFailed: the file can't be read.
        InvalidInput: it is not a list of labels, or two of them are about one session.
    """
    path = folder / LABELS
    if not folder.is_dir():
        raise NotFound(f"no folder at {folder}", f"a folder with logs and a {LABELS}")
    try:
        value: object = json.loads(read_regular(path, _MOST))
    except FileNotFoundError:
        raise NotFound(f"no {LABELS} in {folder}", _EXAMPLE) from None
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON", _EXAMPLE) from None
    if not isinstance(value, list):
        raise InvalidInput(f"{path} is not a list", _EXAMPLE)
    labels = [_label(path, place, item) for place, item in enumerate(cast("list[object]", value))]
    seen: set[str] = set()
    for label in labels:
        if label.session in seen:
            raise InvalidInput(f"{path}: two labels for session {label.session!r}", "one label a session")
        seen.add(label.session)
    return labels


def _label(path: Path, place: int, item: object) -> Label:
    try:
        label = Label.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        raise InvalidInput(f"{path}: label {place}: {where or 'it'}: {first['msg']}", _EXAMPLE) from None
    if label.now is not None and not math.isfinite(label.now):
        raise InvalidInput(f"{path}: label {place}: now: must be a finite number", _EXAMPLE)
    return label
