"""Ask the server by plain HTTP what a small model is asked by a recovery, and take its speed and size.

    python -m bench.llm.probe [--threads N]

A constrained answer (``response_format`` with a JSON schema: the need first, then the entry that answers it) and a call of
a tool, for each of the small histories; form and sense are counted apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bench.llm.histories import HISTORIES, History, entry_id
from bench.llm.packages import default_folder
from bench.llm.server import Server, running, set_up

SECONDS = 30.0
NONE = "none"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: whether its form is right, whether its sense is, the wall clock in seconds, tokens a second."""

    form: bool
    right: bool
    seconds: float
    prefill: float
    decode: float


def ask(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    """Return the server's answer to one chat completion.

    Raises:
        OSError: it can't be reached, refuses, or takes too long.
    """
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions",
        json.dumps({"model": server.model, "temperature": 0, "max_tokens": 200, **body}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer none"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SECONDS) as answer:
        return cast("dict[str, Any]", json.load(answer))


def lead(server: Server, history: History) -> Reply:
    """Ask which entry answers the worker's question; the schema allows the entries there are, and none."""
    ids = [entry_id(history.name, number) for number in range(len(history.known))]
    schema = {
        "type": "object",
        "properties": {"need": {"type": "string", "maxLength": 160}, "answer": {"type": "string", "enum": [*ids, NONE]}},
        "required": ["need", "answer"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "lead", "schema": schema, "strict": False}}
    began = time.monotonic()
    answer = ask(server, {"messages": _messages(history), "response_format": form})
    seconds = time.monotonic() - began
    try:
        value = json.loads(_message(answer)["content"])
        named = str(value["answer"])
        valid = set(value) == {"need", "answer"} and named in (*ids, NONE)
    except (ValueError, KeyError, TypeError):
        named, valid = "", False
    return _reply(answer, valid, named == (history.answer_id or NONE), seconds)


def tool_call(server: Server, history: History) -> Reply:
    """Offer one tool, required to be called, and see whether it is."""
    tool = {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search the history for a text.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    }
    began = time.monotonic()
    answer = ask(server, {"messages": _messages(history), "tools": [tool], "tool_choice": "required"})
    seconds = time.monotonic() - began
    try:
        (call,) = _message(answer)["tool_calls"]
        query = json.loads(call["function"]["arguments"])["query"]
        valid = call["function"]["name"] == "search" and isinstance(query, str)
    except (ValueError, KeyError, TypeError):
        query, valid = "", False
    words = {word.casefold().strip("?") for word in history.asked.split() if len(word) > 4}
    return _reply(answer, valid, any(word in str(query).casefold() for word in words), seconds)


def _messages(history: History) -> list[dict[str, str]]:
    entries = [
        json.dumps({"id": entry_id(history.name, number), "read": given, "found": found})
        for number, (given, found) in enumerate(history.known)
    ]
    told = "\n".join(["Entries:", *entries, f"Question: {history.asked}", "Which entry answers it? Say what is needed first."])
    return [{"role": "system", "content": "You pick the entry that answers a question."}, {"role": "user", "content": told}]


def _message(answer: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", answer["choices"][0]["message"])


def _reply(answer: dict[str, Any], form: bool, sense: bool, seconds: float) -> Reply:
    timings: dict[str, Any] = answer.get("timings") or {}
    speeds = [float(timings.get(name) or 0) for name in ("prompt_per_second", "predicted_per_second")]
    return Reply(form, form and sense, seconds, *speeds)


def speed(server: Server) -> tuple[int, float, float]:
    """Return (tokens of a long prompt, prefill, decode) in tokens a second, the best of three."""
    best = (0, 0.0, 0.0)
    for turn in range(3):  # a different beginning each time, so that nothing of it is remembered
        text = f"{turn} " + " ".join(f"entry {number}: Read src/module_{number}.py" for number in range(40))
        body: dict[str, Any] = {"messages": [{"role": "user", "content": text}], "max_tokens": 64}
        timings: dict[str, Any] = ask(server, body).get("timings") or {}
        found = [timings.get(name) or 0 for name in ("prompt_n", "prompt_per_second", "predicted_per_second")]
        best = (max(best[0], int(found[0])), max(best[1], float(found[1])), max(best[2], float(found[2])))
    return best


def memory_mib(pid: int) -> float | None:
    """Return the resident memory of a process in MiB, where the system tells."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), None)


def proof(server: Server) -> list[str]:
    """Return what the server does, as lines of Markdown."""
    tokens, prefill, decode = speed(server)
    lines = ["| asked | valid in form | right | median seconds |", "| --- | --- | --- | --- |"]
    kinds: tuple[tuple[str, Callable[[Server, History], Reply]], ...] = (
        ("JSON schema: need, then answer", lead), ("one required tool", tool_call),
    )  # fmt: skip
    for title, question in kinds:
        replies = [question(server, history) for history in HISTORIES]
        form, right = sum(reply.form for reply in replies), sum(reply.right for reply in replies)
        median = statistics.median(reply.seconds for reply in replies)
        lines.append(f"| {title} | {form} of {len(replies)} | {right} of {len(replies)} | {median:.2f} |")
    memory = memory_mib(server.pid)
    held = "unknown" if memory is None else f"{memory:.0f} MiB"
    return [
        f"Ready after {server.load_seconds:.1f} s, resident memory {held}. A prompt of {tokens} tokens: prefill "
        f"{prefill:.0f} tokens a second, decode {decode:.0f} (best of three).",
        "",
        *lines,
    ]


def main() -> int:
    """Set up, start, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=default_folder())
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    binary, model = set_up(options.folder)
    with running(binary, model, threads=options.threads) as server:
        print("\n".join(proof(server)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
