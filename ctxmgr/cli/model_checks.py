"""Check which model a recovery would ask, what it would be sent, and which keys lie about unused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ctxmgr.errors import InvalidInput
from ctxmgr.recover.model.config import KEY_VARIABLE, MODEL_VARIABLE, ModelChoice, describe, resolve
from ctxmgr.types.setup import Check

_KEY_ENDING = "_API_KEY"


def check_model(
    flag: str | None,
    base_url: str | None,
    mode: str | None,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    config: Path | None,
) -> Iterator[Check]:
    """Yield which model a recovery would ask and what chose it, what it would be sent, and which keys lie about unused.

    Args:
        flag: the model that an option names; base_url, mode: the options beside it.
        base_url: see ``flag``.
        mode: see ``flag``.
        environment: of the process.
        table: ``[recover.model]`` of the configuration file.
        config: that file.
    """
    try:
        choice = resolve(flag, base_url, mode, environment, table)
    except InvalidInput as error:
        yield Check(name="model", level="fail", finding=error.message, hint=error.hint, kind=error.kind)
        return
    if choice is None:
        finding = "none: recovery goes by rules only; nothing leaves this machine"
        yield Check(name="model", level="ok", finding=finding, detail={"model": None, "chosenBy": None})
    else:
        yield _chosen(choice, _chosen_by(flag, environment, config), environment)
        yield _sent(choice)
        yield from _missing()
    yield from _keys(environment)


def _chosen_by(flag: str | None, environment: Mapping[str, str], config: Path | None) -> str:
    if flag is not None:
        return "--model"
    return MODEL_VARIABLE if environment.get(MODEL_VARIABLE) else str(config)


def _chosen(choice: ModelChoice, chosen_by: str, environment: Mapping[str, str]) -> Check:
    place = describe(choice, environment)
    unsafe = place.leaves and not place.encrypted
    return Check(
        name="model", level="warn" if unsafe else "ok", finding=f"{place.text} (chosen by {chosen_by})",
        hint="anyone on the way can read it: use an https address" if unsafe else None,
        detail={"model": place.model, "provider": place.provider or None, "chosenBy": chosen_by, "host": place.host,
                "leavesMachine": place.leaves, "encrypted": place.encrypted, "mode": choice.mode,
                "keySet": choice.api_key is not None},
    )  # fmt: skip


def _sent(choice: ModelChoice) -> Check:
    """Say what of the history a recovery would send at most."""
    detail: dict[str, Any] = {"mode": choice.mode, "seconds": choice.seconds, "maxTokens": choice.max_tokens,
                              "maxCharacters": choice.max_characters}  # fmt: skip
    if choice.mode == "lead":
        finding = (
            f"one question with the brief of the rules and the entries that may answer it, up to {choice.max_characters:,} "
            "characters, only where the rules found no answer"
        )
    else:
        detail |= {"maxRequests": choice.max_requests}
        finding = (
            f"the brief of the rules, and up to {choice.max_characters:,} characters of history that it asks for, "
            f"in at most {choice.max_requests} requests"
        )
    return Check(name="model.sent", level="info", finding=f"{finding}; {choice.seconds:g} s in all", detail=detail)


def _missing() -> Iterator[Check]:
    if find_spec("pydantic_ai") is None:
        yield Check(
            name="model.extra", level="fail", finding="a model is named, but what is needed to ask it is not installed",
            hint="pip install 'ctxmgr-cli[llm]'", kind=InvalidInput.kind,
        )  # fmt: skip


def _keys(environment: Mapping[str, str]) -> Iterator[Check]:
    """Name the providers' keys in the environment, never their values: a key alone chooses no model."""
    names = sorted(name for name, value in environment.items() if name.endswith(_KEY_ENDING) and name != KEY_VARIABLE and value)
    if names:
        finding = f"{', '.join(names)} in the environment: a key alone never chooses a model"
        yield Check(name="model.keys", level="info", finding=finding, detail={"names": names})
