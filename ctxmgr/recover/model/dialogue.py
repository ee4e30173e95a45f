"""Talk to a model through the model library: with tools, or with one narrow question.

Creates the models of the library, and explains its errors in plain words. Imported only if a model is named: the library takes
longer to load than most commands take to run.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import httpx2
import pydantic_ai
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_ai import (
    Agent,
    ModelRetry,
    NativeOutput,
    RunContext,
    Tool,
    ToolDefinition,
    ToolOutput,
    capture_run_messages,
    exceptions,
)
from pydantic_ai.capabilities import AgentCapability, Hooks, PrepareTools, UseThreadExecutor
from pydantic_ai.exceptions import ModelHTTPError, RetryModelRequest, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from ctxmgr.errors import InvalidInput
from ctxmgr.recover.evidence.quotes import one_line
from ctxmgr.recover.model import messages as words
from ctxmgr.recover.model.config import KEY_VARIABLE, ModelChoice, is_loopback
from ctxmgr.recover.model.exchange import Budget, BudgetError, LeadAnswer, aliases, settle_answer
from ctxmgr.types.model_proposal import Lead, Proposal

if TYPE_CHECKING:  # `client` imports this module
    from ctxmgr.recover.model.client import Conversation

pydantic_ai.BANNER_ENABLED = False
warnings.filterwarnings("ignore", "Sampling parameters", UserWarning)  # the library leaves out a temperature

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a response that are read. A longer response is an error."""

RETRIES = 2
LONGEST_ANSWER = 200_000
"""Maximum characters of one answer. A longer one is not worth correcting, because all of it would be sent again."""

_TOKENS, _LEAD_TOKENS = 4_000, 400  # of one answer; a lead is a number and a phrase
_TOOL_SECONDS = 5.0
_Answer = TypeVar("_Answer", bound=BaseModel)


async def converse(talk: Conversation, model: Model, client: httpx2.AsyncClient | None) -> None:
    """Ask the model, and set the answer or the failure in ``talk``. Raises only exceptions that end the program.

    ``client`` is the connection to close at the end, if it is ours.
    """
    with capture_run_messages() as messages:
        try:
            async with asyncio.timeout(talk.budget.left):
                await (_with_tools if talk.choice.mode == "tools" else _narrow)(talk, model)
        except Exception as error:
            talk.failure = _failure(error, talk.choice, talk)
        finally:
            with suppress(Exception):
                talk.transcript = dump(messages)
            if client is not None:
                with suppress(Exception):
                    await client.aclose()


def _failure(error: Exception, choice: ModelChoice, talk: Conversation | None = None) -> str:
    if not isinstance(error, UnexpectedModelBehavior) or "retries" not in str(error):
        return meaning(error, choice)
    if talk is None or not talk.refused:
        return "it never answered in the form that was asked for"
    times = "answer was" if talk.refusals == 1 else "answers were"
    return f"{talk.refusals} {times} refused, the last one because: {talk.refused}"


async def _with_tools(talk: Conversation, model: Model) -> None:
    named = aliases(talk.question.targets)
    if not named:
        raise BudgetError("there is no agent to choose from")
    target: Any = Literal[tuple(named)]
    answer = create_model("Answer", __base__=Proposal, target=(target, ...))  # the schema allows only these agents as targets
    kit = talk.kit
    functions = {name: getattr(kit, "list_" if name == "list" else name) for name in words.offered_tools(talk.question)}
    agent: Agent[None, Proposal] = Agent(
        None, output_type=ToolOutput(answer, name=words.ANSWER, description=words.ANSWER_TOOL, strict=False),
        deps_type=type(None), instructions=words.rules(talk.question, talk.choice), name="context-manager",
        retries={"tools": RETRIES, "output": RETRIES},
        tools=[Tool(function, name=name, description=words.TOOLS[name]) for name, function in functions.items()],
        tool_timeout=_TOOL_SECONDS, model_settings=_settings(talk, _TOKENS),
        capabilities=[_watch(talk), PrepareTools(_while_there_is_time(talk)), UseThreadExecutor(talk.worker)],
    )  # fmt: skip
    agent.instrument = False

    @agent.output_validator
    async def passes(proposal: Proposal) -> Proposal:
        inside, problems = settle_answer(proposal, named, kit.seen)
        if inside is not None:
            problems = await asyncio.get_running_loop().run_in_executor(talk.worker, talk.check, inside)
        if inside is None or problems:
            talk.refuse("; ".join(problems))
            raise ModelRetry(f"Refused: {'; '.join(problems)}")
        talk.proposal = inside
        return proposal

    prompt = words.opening_message(talk.question, talk.choice)
    await agent.run(prompt, model=model, deps=None, timeout=talk.budget.left, usage_limits=_limits(talk))


async def _narrow(talk: Conversation, model: Model) -> None:
    prompt, ids = words.narrow(talk.question, talk.choice)
    if not ids:
        raise BudgetError("there is no entry to choose from")
    bounded = create_model("Lead", __base__=Lead, answer=(Annotated[int, Field(ge=0, le=len(ids))], ...))
    agent: Agent[None, Lead] = Agent(
        None, output_type=NativeOutput(bounded, name="lead", strict=False), deps_type=type(None),
        instructions=words.rules(talk.question, talk.choice), name="context-manager", retries={"tools": 1, "output": 1},
        model_settings=_settings(talk, _LEAD_TOKENS), capabilities=[_watch(talk)],
    )  # fmt: skip
    agent.instrument = False
    ran = await agent.run(prompt, model=model, deps=None, timeout=talk.budget.left, usage_limits=_limits(talk))
    found = ran.output
    talk.lead = LeadAnswer(need=found.need, entry=ids[found.answer - 1] if found.answer else None)


async def put(
    choice: ModelChoice, model: Model, client: httpx2.AsyncClient | None, instructions: str, prompt: str, shape: type[_Answer]
) -> tuple[_Answer | None, str | None]:
    """Put one question to a model without tools; return (answer, None), or (None, the reason why there is none).

    ``client`` is the connection to close at the end, if it is ours.
    """
    budget = Budget(choice)
    agent: Agent[None, _Answer] = Agent(
        None, output_type=NativeOutput(shape, name="answer", strict=False), deps_type=type(None), instructions=instructions,
        name="context-manager", retries={"tools": RETRIES, "output": RETRIES}, capabilities=[_hooks(budget)],
        model_settings=ModelSettings(max_tokens=_TOKENS, max_retries=0, request_timeout=choice.seconds),
    )  # fmt: skip
    agent.instrument = False
    try:
        async with asyncio.timeout(budget.left):
            ran = await agent.run(
                prompt, model=model, deps=None, timeout=budget.left, usage_limits=UsageLimits(request_limit=None)
            )
        return ran.output, None
    except Exception as error:
        return None, _failure(error, choice)
    finally:
        if client is not None:
            with suppress(Exception):
                await client.aclose()


def _limits(talk: Conversation) -> UsageLimits:
    # The budget counts requests and tokens, because these limits do not work with a server that reports no tokens. A hard
    # limit on calls would end the run without an answer, so the tools refuse further calls first.
    return UsageLimits(request_limit=None, tool_calls_limit=2 * talk.choice.max_tool_calls + 10)


def _settings(talk: Conversation, tokens: int) -> Any:
    def settings(_ctx: RunContext[None]) -> ModelSettings:
        # No retries by the client: one that obeys "Retry-After" would sleep through the whole budget.
        return ModelSettings(max_tokens=tokens, max_retries=0, request_timeout=max(0.05, talk.budget.left))

    return settings


def _while_there_is_time(talk: Conversation) -> Any:
    async def offered(_ctx: RunContext[None], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        return [] if talk.budget.is_low else tools

    return offered


def _hooks(
    budget: Budget, asks: Callable[[], None] = lambda: None, hears: Callable[[ModelResponse], None] = lambda _response: None
) -> Hooks[None]:
    """Return hooks that count requests and responses, and that ask at temperature 0.

    They omit the temperature if the server refuses it, as it may for a model that reasons. For models known to refuse it, the
    library omits it already. ``asks`` is called with each request, ``hears`` with each response.
    """
    hooks: Hooks[None] = Hooks()
    refused: list[Exception] = []

    @hooks.on.before_model_request
    async def count(_ctx: RunContext[None], request: ModelRequestContext) -> ModelRequestContext:
        budget.request()
        asks()
        return request

    @hooks.on.after_model_request
    async def weigh(_ctx: RunContext[None], *, request_context: ModelRequestContext, response: ModelResponse) -> ModelResponse:
        response = _count_response(response, request_context, budget)
        hears(response)
        budget.require_tokens()
        return response

    @hooks.on.prepare_model_request
    async def steady(_ctx: RunContext[None], request: ModelRequestContext) -> ModelRequestContext:
        if not refused:
            request.model_settings = {**(request.model_settings or {}), "temperature": 0.0}
        return request

    @hooks.on.model_request_error
    async def ask_without(_ctx: RunContext[None], *, request_context: ModelRequestContext, error: Exception) -> ModelResponse:
        if refused or not isinstance(error, ModelHTTPError) or "temperature" not in str(error).casefold():
            raise error
        refused.append(error)
        budget.request()
        raise RetryModelRequest

    return hooks


def _watch(talk: Conversation) -> AgentCapability[None]:
    """Return hooks that count, and that refuse several answers at once and malformed ones."""
    budget = talk.budget

    def asks() -> None:
        talk.say(f"asking {talk.choice.name} (request {budget.requests}, {budget.left:.0f} s left)")

    def hears(response: ModelResponse) -> None:
        answers = sum(isinstance(part, ToolCallPart) and part.tool_name == words.ANSWER for part in response.parts)
        if answers > 1:
            talk.refuse(f"{answers} answers at once, exactly one agent continues")
            raise ModelRetry(f"Refused: you gave {answers} answers at once. Exactly one agent continues: answer once.")

    async def misformed(_ctx: RunContext[None], *, error: ValidationError | ModelRetry, **_rest: Any) -> Any:
        talk.refuse(_misform(error))
        raise error

    hooks = _hooks(budget, asks, hears)
    hooks.on.tool_validate_error(misformed)
    hooks.on.output_validate_error(misformed)
    return hooks


def _count_response(response: ModelResponse, asked: ModelRequestContext, budget: Budget) -> ModelResponse:
    """Return a response fit to be stored, and count its tokens or an estimate; too long a response ends the consultation."""
    budget.input_tokens += response.usage.input_tokens
    budget.output_tokens += response.usage.output_tokens
    response = sound(response)
    length = sum(_length(part) for part in response.parts)
    known = response.usage.input_tokens + response.usage.output_tokens
    budget.tokens += known or (_count_characters(asked.messages) + length) // 4
    if length > LONGEST_ANSWER:
        raise BudgetError(f"its answer was {length:,} characters long")
    return response


def _misform(error: ValidationError | ModelRetry) -> str:
    if isinstance(error, ModelRetry):
        return error.message
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place or 'the answer'}: {first['msg']}"


def _count_characters(messages: Sequence[ModelMessage]) -> int:
    """Return the number of characters said so far, for servers that do not count tokens. Never raises."""
    parts: list[object] = [part for message in messages for part in message.parts]
    return sum(_length(part) or len(str(getattr(part, "content", ""))) for part in parts)


def _length(part: object) -> int:
    if isinstance(part, TextPart | ThinkingPart):
        return len(part.content)
    if isinstance(part, ToolCallPart):
        return len(part.args) if isinstance(part.args, str) else len(str(cast("object", part.args)))
    return 0


class _Bounded(httpx2.AsyncByteStream):
    """A response that ends with an error if it becomes too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if total > MAX_RESPONSE_BYTES:
                raise BudgetError(f"the server sent more than {MAX_RESPONSE_BYTES:,} bytes")
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
    for kind, said in _MEANING:
        if isinstance(error, kind):
            status = f" (HTTP {error.status_code})" if isinstance(error, exceptions.ModelHTTPError) else ""
            where = f"; it is read from {KEY_VARIABLE}, or from the key_variable beside a base_url in your config.toml"
            hint = where if kind is exceptions.ModelAuthenticationError and choice.base_url else ""
            return said + status + hint
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
        response = cast("ModelResponse", pydantic_ai.ModelMessagesTypeAdapter.validate_python(_replace_surrogates(whole))[0])
    return response


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in cast("list[Any]", value)]
    return value


def dump(messages: list[Any]) -> bytes:
    """Return the conversation as JSON, in pydantic-ai's message format."""
    return pydantic_ai.ModelMessagesTypeAdapter.dump_json(messages)
