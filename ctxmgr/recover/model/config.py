"""Choose the model to ask, and its limits, from flag, environment and settings.

History may be private, so it goes to a model only if somebody has named one. This module contacts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import InvalidInput
from ctxmgr.recover.evidence.quotes import quote_text
from ctxmgr.types.operations import ModelRequest
from ctxmgr.types.route import Mode

MODEL_VARIABLE: Final = "CTXMGR_MODEL"
BASE_URL_VARIABLE: Final = "CTXMGR_BASE_URL"
KEY_VARIABLE: Final = "CTXMGR_API_KEY"
"""The variable with the key for a server that an option or the environment names by its address.

A file that names a server names the variable of its key beside it (``key_variable``). A provider's own key goes only to
that provider.
"""

_OWN_HOSTS: Mapping[str, str] = {
    "OPENAI_API_KEY": "openai.com",
    "OPENROUTER_API_KEY": "openrouter.ai",
    "DEEPSEEK_API_KEY": "deepseek.com",
    "TOGETHER_API_KEY": "together.xyz",
    "FIREWORKS_API_KEY": "fireworks.ai",
    "ANTHROPIC_API_KEY": "anthropic.com",
    "GROQ_API_KEY": "groq.com",
    "MISTRAL_API_KEY": "mistral.ai",
    "CO_API_KEY": "cohere.com",
    "GEMINI_API_KEY": "generativelanguage.googleapis.com",
    "GOOGLE_API_KEY": "generativelanguage.googleapis.com",
}
"""Providers' own key variables, and the domain to which each key may be sent."""

SECONDS, TOOL_CALLS, TOKENS = 30.0, 24, 60_000  # of one consultation: seconds in all, calls, tokens read and written

_OPENAI = ("openai", "openai-chat")
_SAME_DIALECT = (*_OPENAI, "ollama", "vllm", "litellm", "openrouter", "deepseek", "together", "fireworks")
"""Providers with the chat completions API. Every server that is named by its address is assumed to have this API."""

_OTHER_DIALECT = ("anthropic", "google", "google-cloud", "bedrock", "cohere", "mistral", "groq", "openai-responses")
_KNOWN = ("name", "base_url", "key_variable", "mode", "timeout", "max_tokens", "max_tool_calls")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_HOST = re.compile(r"[\w.-]{1,253}|[0-9a-f:.]{2,45}(?:%\w{1,16})?")
"""Host names and addresses. Other characters could make two URL parsers disagree on where the host ends, and leak the key."""
_PROVIDER = re.compile(r"[a-z0-9][a-z0-9/-]{0,40}")
_EXAMPLE = "e.g. --model anthropic:NAME, or --model NAME --base-url http://127.0.0.1:11434/v1"


class MissingExtra(InvalidInput):
    """A named model needs a package that is not installed; the hint is the command that installs it."""


_EXTRAS = ("anthropic", "google", "groq", "mistral", "bedrock", "cohere")


def missing_extra(choice: ModelChoice, error: ImportError) -> MissingExtra:
    """Return the error for a model whose provider's package is not installed."""
    name = choice.name if choice.base_url is None else ""
    provider = name.partition(":")[0].split("-")[0]
    extra = provider if provider in _EXTRAS and "pydantic_ai" not in str(error.name) else "llm"
    return MissingExtra(
        f"a model was named{f' ({name})' if name else ''}, but what is needed to ask it is not installed",
        f"pip install 'ctxmgr-cli[{extra}]', or answer by the rules alone with --no-llm",
    )


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to ask, and the limits for it.

    Attributes:
        name: ``provider:name``; for a server named by its address, the name by which the server knows the model.
        base_url: address of a server with the chat completions API, or None for the provider's own address.
        mode: ``tools`` lets the model read the history itself; ``lead`` asks it one narrow question.
        seconds: wall clock time of the whole consultation.
        max_requests: requests to the model, including those after tool calls.
        max_tool_calls: tool calls that get an answer; further ones are told to stop reading.
        max_tokens: tokens that the model reads and writes in the whole consultation.
        max_characters: characters that all tools together may return.
        api_key: the key for ``base_url``; providers' libraries find their own.
    """

    name: str
    base_url: str | None = None
    mode: Mode = "tools"
    seconds: float = SECONDS
    max_requests: int = 12
    max_tool_calls: int = TOOL_CALLS
    max_tokens: int = TOKENS
    max_characters: int = 24_000
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination to which history would be sent.

    ``host`` is None for the provider's default address; ``leaves``: the history leaves this machine; ``text`` is the same
    as a sentence.
    """

    provider: str
    model: str
    host: str | None
    leaves: bool
    encrypted: bool
    text: str


def resolve(
    flag: str | None, base_url: str | None, mode: str | None, environment: Mapping[str, str], table: Mapping[str, Any] | None
) -> ModelChoice | None:
    """Return the model to ask, or None if the rules answer alone.

    The flag takes precedence over ``CTXMGR_MODEL``, and that over ``[recover.model]`` of the configuration; ``none`` in any of
    them turns the model off. An address belongs to the name beside it, so a provider named by a flag is never contacted at
    the configuration's address.

    Raises:
        InvalidInput: a name, an address, a mode or a setting can't be used.
    """
    table = _check_settings(table or {})
    sources = [
        (flag, base_url),
        (environment.get(MODEL_VARIABLE) or None, environment.get(BASE_URL_VARIABLE) or None),
        (cast("str | None", table.get("name")), cast("str | None", table.get("base_url"))),
    ]
    place = next((place for place, (name, _) in enumerate(sources) if name is not None), None)
    if place is None:
        if base_url is not None:
            raise InvalidInput(f"the address {quote_text(base_url, 80)} names a server, but no model is named", _EXAMPLE)
        return None
    name = str(sources[place][0]).strip()
    if name.lower() == "none":
        return None
    addresses = [address for _, address in sources]
    stronger = next((address for address in addresses[: place + 1] if address is not None), None)
    weaker = next((address for address in addresses[place + 1 :] if address is not None), None)
    # A name without a provider needs a server, so it must mean the configured one.
    address = stronger if stronger is not None or _provider(name) is not None else weaker
    by_file = address is not None and address not in addresses[:-1]
    return _choice(name, address, mode, environment, table, by_file=by_file)


def _choice(
    name: str, address: str | None, mode: str | None, environment: Mapping[str, str], table: Mapping[str, Any], *, by_file: bool
) -> ModelChoice:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{quote_text(name, 80)} is no name of a model", _EXAMPLE)
    wanted = mode or table.get("mode") or "tools"
    if wanted not in ("tools", "lead"):
        raise InvalidInput(
            f"there is no mode {quote_text(str(wanted), 40)}",
            "tools lets the model read the history, lead asks it one question",
        )
    provider = _provider(name)
    key = None
    if address is None:
        if provider is None:
            raise InvalidInput(f"{quote_text(name, 80)} does not say which provider's model it is", _EXAMPLE)
        if not name.partition(":")[2]:
            raise InvalidInput(f"{quote_text(name, 80)} names a provider and no model", _EXAMPLE)
    else:
        address = _address(address)
        if provider in _OTHER_DIALECT:
            raise InvalidInput(
                f"{provider} does not speak the dialect of servers that are named by an address",
                "leave out the address, or the provider before the model's name",
            )
        key = _key(provider, address, environment, cast("str | None", table.get("key_variable")) if by_file else KEY_VARIABLE)
        name = name.partition(":")[2] if provider in _SAME_DIALECT else name
        if not name:
            raise InvalidInput("the model has no name", _EXAMPLE)
    return ModelChoice(
        name=name, base_url=address, mode=wanted, seconds=float(table.get("timeout", SECONDS)),
        max_tokens=int(table.get("max_tokens", TOKENS)), max_tool_calls=int(table.get("max_tool_calls", TOOL_CALLS)),
        api_key=key,
    )  # fmt: skip


def _key(provider: str | None, address: str, environment: Mapping[str, str], variable: str | None) -> str | None:
    """Return the key for a server named by its address, or None. A key goes only to the host it belongs to.

    Args:
        provider: the provider before the model's name, if any.
        address: the normalised address of the server.
        environment: the environment of the process.
        variable: the variable configured for this server, or `KEY_VARIABLE` if an option or the environment names the server.

    Raises:
        InvalidInput: the variable is a provider's own, and the server is not that provider's.
    """
    parts = urlsplit(address)
    host = (parts.hostname or "").rstrip(".").lower()
    if variable is not None and variable in _OWN_HOSTS and not _belongs(variable, parts.scheme, host):
        raise InvalidInput(
            f"{variable} is not sent to {quote_text(host, 120)}: it belongs to {_OWN_HOSTS[variable]}",
            f"put the key of this server into another variable, e.g. {KEY_VARIABLE}, and name that as key_variable",
        )
    named = environment.get(BASE_URL_VARIABLE)
    if variable == KEY_VARIABLE and named and _origin(named) != _origin(address):
        variable = None  # the key is for the server that the environment names, and this is another one
    found = environment.get(variable) if variable is not None else None
    own = "OPENAI_API_KEY" if provider in _OPENAI else f"{provider}_API_KEY".upper()
    if not found and own in _OWN_HOSTS and _belongs(own, parts.scheme, host):
        found = environment.get(own)
    return found or None


def _belongs(variable: str, scheme: str, host: str) -> bool:
    domain = _OWN_HOSTS[variable]
    return scheme == "https" and (host == domain or host.endswith(f".{domain}"))


def _origin(address: str) -> tuple[str, str, int | None]:
    """Return (scheme, host, port) of an address; for an invalid one, a value that equals no other."""
    try:
        parts = urlsplit(address.strip())
        return parts.scheme, (parts.hostname or "").rstrip(".").lower(), parts.port
    except ValueError:
        return address, "", None


def _provider(name: str) -> str | None:
    provider, colon, _ = name.partition(":")
    return provider if colon and _PROVIDER.fullmatch(provider) else None


def _address(text: str) -> str:
    """Return the normalised address of a server. Credentials, queries and fragments are refused."""
    shown = quote_text(text, 120)
    hint = "e.g. --base-url http://127.0.0.1:11434/v1"
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"{shown} is no address of a server", hint) from None
    plain = text.isprintable() and " " not in text.strip()
    if parts.scheme not in ("http", "https") or not host or not plain or not _HOST.fullmatch(host):
        raise InvalidInput(f"{shown} is no address of a server", hint)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("the address of a server must not hold credentials", f"put the key into {KEY_VARIABLE}")
    if parts.query or parts.fragment:
        raise InvalidInput("the address of a server holds more than an address: a query or a fragment", hint)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


_LIMITS: Mapping[str, tuple[float, float, float]] = {
    "timeout": (0.1, 600, SECONDS),
    "max_tokens": (1_000, 10_000_000, TOKENS),
    "max_tool_calls": (0, 500, TOOL_CALLS),
}


def _check_settings(table: Mapping[str, Any]) -> Mapping[str, Any]:
    if unknown := sorted(set(table) - set(_KNOWN)):
        raise InvalidInput(f"recover.model has no setting {quote_text(unknown[0], 60)}", f"known: {', '.join(_KNOWN)}")
    for name in ("name", "base_url", "mode"):
        if name in table and not isinstance(table[name], str):
            raise InvalidInput(f"recover.model.{name} must be text", f'e.g. {name} = "..."')
    variable = table.get("key_variable")
    if variable is not None and not (isinstance(variable, str) and _VARIABLE.fullmatch(variable)):
        raise InvalidInput(
            "recover.model.key_variable must be the name of a variable of the environment",
            f'e.g. key_variable = "{KEY_VARIABLE}"',
        )
    for name, (least, most, usual) in _LIMITS.items():
        value = table.get(name, usual)
        kinds = (int, float) if name == "timeout" else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            kind = "number" if float in kinds else "whole number"
            raise InvalidInput(
                f"recover.model.{name} must be a {kind} from {least:g} to {most:g}", f"leave it out for {usual:g}"
            )
    return table


def describe(choice: ModelChoice, environment: Mapping[str, str]) -> Destination:
    """Return where the history would be sent, without contacting anything.

    A variable in the environment may give a provider's address (``OLLAMA_BASE_URL`` and the like). Through a proxy of the
    environment, everything leaves the machine.
    """
    provider, model, address = "", choice.name, choice.base_url
    if address is None:
        provider, _, model = choice.name.partition(":")
        prefix = "OPENAI" if provider in _OPENAI else re.sub(r"[^A-Z0-9]", "_", provider.upper())
        address = environment.get(f"{prefix}_BASE_URL") or None
    host, near, encrypted = None, False, True
    if address is not None:
        try:
            parts = urlsplit(address)
            host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
            near = is_loopback(parts.hostname or "")
            encrypted = parts.scheme == "https"
        except ValueError:
            encrypted = False
    proxied = choice.base_url is None and any(environment.get(name) for name in _PROXIES)
    where = quote_text(host, 120)[1:-1] if host else f"the usual address of {provider}"
    leaves = not near or proxied
    manner = "leaves this machine" if leaves else "stays on this machine"
    if leaves and not encrypted:
        manner += ", unencrypted"
    if leaves and proxied and near:
        manner += " through the proxy of the environment"
    text = f"the model {quote_text(model, 120)[1:-1]} at {where} is asked; what it reads of the history {manner}"
    return Destination(provider=provider, model=model, host=host, leaves=leaves, encrypted=encrypted, text=text)


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, judged by its name or address alone; no name is looked up."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def chosen(wanted: ModelRequest, environment: Mapping[str, str], table: Mapping[str, Any]) -> ModelChoice | None:
    """Return the model to ask, or None if the rules answer alone.

    Raises:
        InvalidInput: a name, an address or a limit can't be used.
    """
    if wanted.off:
        return None
    limits = {"timeout": wanted.seconds, "max_tokens": wanted.max_tokens, "max_tool_calls": wanted.max_tool_calls}
    given = {name: value for name, value in limits.items() if value is not None}
    # Limits given with a call are checked like those of the configuration, whether or not a model is asked.
    return resolve(wanted.name, wanted.base_url, wanted.mode, environment, {**(table or {}), **given})
