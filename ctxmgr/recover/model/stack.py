"""Create models of the model library, and explain its errors in plain words.

Imported only if a model is named: the library takes longer to load than most commands take to run.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2
import pydantic_ai
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, infer_model

from ctxmgr.errors import InvalidInput
from ctxmgr.recover.model.config import KEY_VARIABLE, ModelChoice, is_loopback
from ctxmgr.recover.model.conversation import one_line
from ctxmgr.recover.model.exchange import BudgetError

pydantic_ai.BANNER_ENABLED = False
warnings.filterwarnings("ignore", "Sampling parameters", UserWarning)  # the library leaves out a temperature

LONGEST_ANSWER = 8 * 1024 * 1024
"""Maximum bytes of a response that are read. A longer response is an error."""


class _Bounded(httpx2.AsyncByteStream):
    """A response that ends with an error if it becomes too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if total > LONGEST_ANSWER:
                raise BudgetError(f"the server sent more than {LONGEST_ANSWER:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise BudgetError("the server packed its answer, though it was asked not to")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


def _client(host: str) -> httpx2.AsyncClient:
    """Return a client for a server named by its address. It connects only to that server.

    It follows no redirect, and uses no proxy for this machine's own servers.
    """
    headers, hooks = {"accept-encoding": "identity"}, {"response": [_bound]}
    return httpx2.AsyncClient(follow_redirects=False, trust_env=not is_loopback(host), headers=headers, event_hooks=hooks)


def build(choice: ModelChoice) -> tuple[Model, httpx2.AsyncClient | None]:
    """Return the model, and the connection to close after it. Nothing is contacted.

    Raises:
        ImportError: a package that this provider needs is not installed.
        InvalidInput: the provider is unknown, or its key is missing.
    """
    try:
        if choice.base_url is None:
            return infer_model(choice.name), None
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        client = _client(httpx2.URL(choice.base_url).host)
        provider = OpenAICompatibleProvider(
            "named-server", base_url=choice.base_url, api_key=choice.api_key, http_client=client
        )
        return OpenAIChatModel(choice.name, provider=provider), client
    except (exceptions.UserError, ValueError) as error:
        hint = "give the key or address it speaks of, name another model, or leave the model out with --no-llm"
        raise InvalidInput(f"the model {one_line(choice.name)} can't be asked: {one_line(str(error))}", hint) from None


_MEANING: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ModelConnectionError, "the server can't be reached"),
    (exceptions.ModelAuthenticationError, "the server refused the key"),
    (exceptions.ModelQuotaExceededError, "the account's quota is used up"),
    (exceptions.ModelRateLimitError, "the server takes no more requests just now"),
    (exceptions.ModelOverloadedError, "the server is overloaded"),
    (exceptions.ModelNotFoundError, "the server does not know this model"),
    (exceptions.ModelContextWindowExceededError, "the history is longer than this model can read"),
)


def meaning(error: BaseException, choice: ModelChoice) -> str:
    """Return the meaning of an error in one printable line."""
    if isinstance(error, TimeoutError | exceptions.ModelTimeoutError | exceptions.ModelRequestTimeout):
        return f"no answer within {choice.seconds:g} s"
    for kind, words in _MEANING:
        if isinstance(error, kind):
            status = f" (HTTP {error.status_code})" if isinstance(error, exceptions.ModelHTTPError) else ""
            where = f"; it is read from {KEY_VARIABLE}, or from the key_variable beside a base_url in your config.toml"
            hint = where if kind is exceptions.ModelAuthenticationError and choice.base_url else ""
            return words + status + hint
    if isinstance(error, BudgetError):
        return one_line(str(error))
    if isinstance(error, exceptions.UsageLimitExceeded):
        return "it made more tool calls than a consultation may take"
    if isinstance(error, exceptions.ModelHTTPError):
        return one_line(f"the server answered with HTTP {error.status_code}: {error.body}")
    if isinstance(error, exceptions.UnexpectedModelBehavior):
        return one_line(f"no valid answer: {error}").rstrip(": ")
    if isinstance(error, exceptions.ModelAPIError):
        return one_line(f"the server failed: {error}")
    return one_line(f"the consultation broke off: {type(error).__name__}: {error}")


def sound(response: ModelResponse) -> ModelResponse:
    """Return a response that can be sent back and stored: servers may write lone surrogates."""
    try:
        dump([response])
    except ValueError:
        whole = pydantic_ai.ModelMessagesTypeAdapter.dump_python([response])
        response = cast("ModelResponse", pydantic_ai.ModelMessagesTypeAdapter.validate_python(_mended(whole))[0])
    return response


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_mended(name): _mended(item) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_mended(item) for item in cast("list[Any]", value)]
    return value


def dump(messages: list[Any]) -> bytes:
    """Return the conversation as JSON, in pydantic-ai's message format."""
    return pydantic_ai.ModelMessagesTypeAdapter.dump_json(messages)
