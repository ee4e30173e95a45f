"""Put one question to a model without tools. It answers or fails within its time, whatever happens.

`dialogue` and `stack` load the model's library; this module does not, and reports a missing library as a failure.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel

from ctxmgr.errors import CtxmgrError
from ctxmgr.recover.model.client import load_library
from ctxmgr.recover.model.config import ModelChoice

_GRACE = 0.5
_Answer = TypeVar("_Answer", bound=BaseModel)


def ask(
    choice: ModelChoice, instructions: str, prompt: str, shape: type[_Answer], model: Any = None
) -> tuple[_Answer | None, str | None]:
    """Return a model's answer, or None and why there is none within the seconds of the choice.

    Args:
        choice: the model and its limits.
        instructions: what the model has to do.
        prompt: the material for it; recorded text in it must be fenced.
        shape: the shape of the answer.
        model: a pydantic-ai model to ask instead of the named one.

    Raises:
        InvalidInput: the model can't be asked: a setting is wrong, a package or a key is missing.
    """
    heard: queue.SimpleQueue[tuple[_Answer | None, str | None] | CtxmgrError] = queue.SimpleQueue()

    def work() -> None:
        try:
            dialogue, built, client = load_library(choice, model)
            heard.put(asyncio.run(dialogue.put(choice, built, client, instructions, prompt, shape)))
        except CtxmgrError as error:
            heard.put(error)
        except Exception as error:  # a model's library may fail in any way; what needs no model remains
            heard.put((None, f"it broke off: {type(error).__name__}"))

    threading.Thread(target=work, name="ctxmgr-model", daemon=True).start()
    answered: tuple[_Answer | None, str | None] | CtxmgrError = (None, f"no answer within {choice.seconds:g} s")
    with suppress(queue.Empty):
        answered = heard.get(timeout=choice.seconds + _GRACE)
    if isinstance(answered, CtxmgrError):
        raise answered
    return answered
