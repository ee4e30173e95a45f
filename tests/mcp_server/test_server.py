"""``ctxmgr mcp``: what an agent gets over the protocol, by the SDK's own client."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

import anyio
import httpx2
import pytest
from mcp import Client, MCPError

from ctxmgr.errors import StorageFailed
from ctxmgr.mcp_server.server import LOOPBACK, build_server, require_token
from ctxmgr.mcp_server.tools import MAX_ROWS, Tools
from ctxmgr.store import open_store
from ctxmgr.types.plain_records import build
from ctxmgr.workspace import Workspace
from tests import builders as b

_T = TypeVar("_T")

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
}}  # fmt: skip
WORDS = ["> Make it green.", "Read:a -> one", *["!Bash:make build -> missing separator on line 7"] * 4]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the path of a store with a looping session and a long calm one before it."""
    path = str(tmp_path / "history.db")
    with closing(open_store(path, create=True)) as opened:
        opened.append(
            [{**record} for record in b.steps("calm", [f"Read:file{number} -> text {number}" for number in range(50)])]
        )
        opened.append(b.steps("stuck", WORDS))
    return path


_server = lru_cache(maxsize=2)(build_server)
"""Returns the server of tools; to describe its tools takes it longer than to answer."""


def ask(tools: Tools, work: Callable[[Client], Awaitable[_T]]) -> _T:
    """Connect a client to a server over these tools, and do the work."""

    async def connected() -> _T:
        async with Client(_server(tools)) as client:
            return await work(client)

    return anyio.run(connected)


def call(tools: Tools, name: str, **given: Any) -> Any:
    """Return the structured answer of a tool; a refusal fails the test."""

    async def work(client: Client) -> Any:
        return await client.call_tool(name, given)

    answer = ask(tools, work)
    assert not answer.is_error, answer.content
    return answer.structured_content


def refusal(tools: Tools, name: str, **given: Any) -> str:
    """Return what a tool says when it refuses."""

    async def work(client: Client) -> Any:
        return await client.call_tool(name, given)

    answer = ask(tools, work)
    assert answer.is_error
    return answer.content[0].text


def test_a_stuck_run_is_told_with_cause_and_next_step(store: str) -> None:
    """The first two tools are all that a looping agent needs."""
    found = call(Tools(store), "stuck_check", session="stuck")
    told = call(Tools(store), "continuation", session="stuck")

    assert found["verdict"] == "loop"
    assert found["findings"][0]["count"] == 4
    assert told["stuck"]
    assert told["prompt"].startswith("[ctxmgr]")
    assert call(Tools(store), "continuation", session="stuck")["id"] == told["id"]
    calm = call(Tools(store), "continuation", session="calm")
    assert (calm["stuck"], calm["prompt"]) == (False, None)


def test_one_session_alone_is_read_where_asked(tmp_path: Path) -> None:
    """With ``only_session``, neither tool that answers tells what another session of the same project holds."""
    path = str(tmp_path / "history.db")
    with closing(open_store(path, create=True)) as opened:
        for name, words in (("old", [*WORDS, "Bash:touch key_91 -> ok", "Bash:make build -> built"]), ("stuck", WORDS)):
            opened.append([build("session", name, b.at(0), process=f"{name}-p", meta={"cwd": "/p"}), *b.steps(name, words)])
    tools = Tools(path, readonly=True)
    asked = {
        "type": "introspect",
        "agent": "main",
        "reason": "what is key_91 for?",
        "goal": "make it green",
        "session": "stuck",
    }

    for name, given in (("continuation", {"session": "stuck"}), ("context_request", asked)):
        assert "touch key_91" in call(tools, name, **given)["prompt"]
        assert "touch key_91" not in call(tools, name, **given, only_session=True)["prompt"]


def test_a_store_that_cannot_be_written_is_answered_from(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is given and not recorded; a tool that only writes is refused."""
    opens = Workspace.open

    def refuse(*args: Any, **given: Any) -> Workspace:
        if not given.get("readonly"):
            raise StorageFailed("history.db can't be written", "check the permissions of the file and its folder")
        return opens(*args, **given)

    monkeypatch.setattr(Workspace, "open", refuse)

    assert call(Tools(store), "continuation", session="stuck")["prompt"].startswith("[ctxmgr]")
    assert "history.db can't be written" in refusal(Tools(store), "note_add", entries=[0], text="x", session="stuck")


def test_damage_is_told_beside_the_verdict(tmp_path: Path) -> None:
    """A healthy answer about a log of which a part could not be read says so."""
    log = tmp_path / "run.jsonl"
    whole = "".join(json.dumps(record) + "\n" for record in b.steps("calm", ["Read:a", "Read:b"]))
    log.write_text(whole + '{"v":1,"kind":"entry"', encoding="utf-8")

    found = call(Tools(str(log), readonly=True), "stuck_check")

    assert any("incomplete" in note for note in found["notes"])


def test_the_history_is_read_in_pages(store: str) -> None:
    """No answer holds more rows than the limit, and the pages together hold all of them."""
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = call(Tools(store), "history_list", session="calm", limit=1000, offset=offset)
        assert len(page["entries"]) <= MAX_ROWS
        seen += [entry["index"] for entry in page["entries"]]
        offset = page["next_offset"]
    assert seen == list(range(50))


def test_each_reading_tool_answers(store: str) -> None:
    """Search, trace, show and messages find what was recorded."""
    tools = Tools(store)
    assert call(tools, "history_search", query="separator", session="stuck")["total"] == 4
    assert len(call(tools, "history_trace", action="Bash", session="stuck")["entries"]) == 4
    assert call(tools, "history_show", index=-1, session="stuck")["entry"]["status"] == "error"
    assert call(tools, "history_messages", session="stuck")["messages"][0]["text"] == "Make it green."


def test_tools_answer_over_a_server_as_over_a_file(store: str, server_url: str) -> None:
    """Reading, judging and writing tools take a URL in the place of a path, and say the same."""
    with closing(open_store(store)) as opened, closing(open_store(server_url, create=True)) as target:
        target.append(list(opened.sessions.records(None)))
    for name, given in (
        ("stuck_check", {}), ("history_list", {"limit": 3}), ("history_search", {"query": "separator"}),
        ("tried_before", {"action": "Bash", "input": "make build"}),
    ):  # fmt: skip
        there, here = (call(Tools(place), name, session="stuck", **given) for place in (server_url, store))
        assert there == here
    tools = Tools(server_url)
    assert call(tools, "note_add", entries=[1], text="the tab is missing", session="stuck")["entries"] == [1]
    assert call(tools, "history_show", index=1, session="stuck")["entry"]["notes"] == ["the tab is missing"]


def test_tried_before_counts_equal_inputs(store: str) -> None:
    """A command is found by itself and as the only field of an input; another one is not."""
    tools = Tools(store)
    found = call(tools, "tried_before", action="Bash", input="make build", session="stuck")
    assert (found["times"], found["ok"], found["failed"]) == (4, 0, 4)
    assert call(tools, "tried_before", action="Bash", input="make test", session="stuck")["times"] == 0
    with closing(open_store(store)) as opened:
        opened.append([b.entry("fields", 0, "Bash", {"command": "ls"}), b.result("fields", 0, "a")])
    for spelled in ("ls", '{"command": "ls"}', {"command": "ls"}):
        assert call(tools, "tried_before", action="Bash", input=spelled, session="fields")["times"] == 1


@pytest.mark.parametrize("text", ["1e3", '{"a":1}', '{"command": "ls"}', "null", "[1,  2]", '"quoted"', "[" * 100_000])
def test_a_text_that_looks_like_json_is_found_as_it_was_recorded(store: str, text: str) -> None:
    """A tool may take a text, and what stands in it may be JSON."""
    with closing(open_store(store)) as opened:
        opened.append([b.entry("texts", 0, "Bash", text), b.result("texts", 0, "a")])
    assert Tools(store).tried_before("Bash", text, "texts").times == 1


def test_a_long_output_comes_in_pages(store: str) -> None:
    """A list cuts long texts and says so; the pages of the entry hold all of it."""
    text = "".join(f"line {number}\n" for number in range(3000))
    with closing(open_store(store)) as opened:
        opened.append([b.entry("long", 0, "Bash", "cat log"), b.result("long", 0, text)])
    tools = Tools(store)

    assert call(tools, "history_list", session="long")["entries"][0]["cut"] == ["output"]
    parts: list[str] = []
    start: int | None = 0
    while start is not None:
        whole = call(tools, "history_show", index=0, session="long", start=start)
        parts.append(whole["entry"]["output"])
        start = whole["next_from"]
    assert "".join(parts) == text


def test_notes_and_memory_are_written_and_found(store: str) -> None:
    """What an agent notes and retains is there for the next one."""
    tools = Tools(store)
    assert call(tools, "note_add", entries=[1], text="the tab is missing", session="stuck")["entries"] == [1]
    assert call(tools, "history_show", index=1, session="stuck")["entry"]["notes"] == ["the tab is missing"]
    call(tools, "memory_retain", text="make wants a tab before each recipe", session="stuck")
    assert call(tools, "memory_recall", query="make recipe tab")["result"][0]["text"] == "make wants a tab before each recipe"


def test_a_server_that_only_reads_writes_nothing(store: str) -> None:
    """Writing tools are not offered, and an answer is worked out without being recorded."""
    tools = Tools(store, readonly=True)

    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    before = Path(store).read_bytes()
    assert {"note_add", "memory_retain"}.isdisjoint(ask(tools, names))
    assert call(tools, "continuation", session="stuck")["prompt"].startswith("[ctxmgr]")
    assert Path(store).read_bytes() == before


def test_tools_say_what_they_are(store: str) -> None:
    """Each tool has a description, a schema of its answer, and hints; only writers are not read-only."""

    async def tools(client: Client) -> list[Any]:
        return list((await client.list_tools()).tools)

    listed = ask(Tools(store), tools)
    assert listed[0].name == "stuck_check"
    for tool in listed:
        assert tool.description
        assert tool.output_schema
        assert tool.annotations.destructive_hint is False
    assert {tool.name for tool in listed if not tool.annotations.read_only_hint} == {
        "continuation", "context_request", "note_add", "memory_retain",
    }  # fmt: skip


def test_errors_say_what_to_do_and_nothing_else_leaks(store: str) -> None:
    """A deliberate error reaches the agent with its kind and hint; arguments that do not fit are refused."""
    tools = Tools(store)
    assert "Index out of bounds" in refusal(tools, "history_show", index=99, session="stuck")
    assert "notFound" in refusal(tools, "history_list", session="nowhere")
    assert "types: introspect, proceed" in refusal(tools, "context_request", type="x", agent="a", reason="r", goal="g")
    assert refusal(tools, "history_show", index="first")
    assert "Query cannot be empty" in refusal(tools, "history_search", query=" ")


def test_access_rules_hold(store: str) -> None:
    """An agent without a grant finds nothing, and a missing session looks the same."""
    tools = Tools(store, agent="reader")
    hidden, missing = (refusal(tools, "history_list", session=name) for name in ("stuck", "nowhere"))
    assert hidden.replace("stuck", "?") == missing.replace("nowhere", "?")


def test_resources_and_prompts_answer(store: str) -> None:
    """Sessions, entries and continuations are resources; the two prompts hold text to act on."""
    told = call(Tools(store), "continuation", session="stuck")

    async def work(client: Client) -> tuple[str, str, str, str]:
        session = (await client.read_resource("history://session/stuck")).contents[0]
        entry = (await client.read_resource("history://entry/stuck/0")).contents[0]
        text = (await client.read_resource(f"history://continuation/{told['id']}")).contents[0]
        prompt = await client.get_prompt("continue", {"session": "stuck"})
        with pytest.raises(MCPError):
            await client.read_resource("history://entry/stuck/many")
        said = [getattr(each, "text", "") for each in (session, entry, text, prompt.messages[0].content)]
        return said[0], said[1], said[2], said[3]

    session, entry, text, prompt = ask(Tools(store), work)
    assert json.loads(session)["verdict"] == "loop"
    assert json.loads(entry)["entry"]["action"] == "Read"
    assert text == told["prompt"] == prompt


def test_http_needs_the_token(store: str) -> None:
    """Without the token, or with a wrong one, nothing is answered but 401; with it the handshake is."""
    inner = build_server(Tools(store)).streamable_http_app(host=LOOPBACK)

    async def statuses(*tokens: str | None) -> list[int]:
        transport = httpx2.ASGITransport(app=require_token(inner, "secret"))
        base = f"http://{LOOPBACK}:8000"
        async with inner.router.lifespan_context(inner), httpx2.AsyncClient(transport=transport, base_url=base) as client:
            found: list[int] = []
            for token in tokens:
                sent = {"accept": "application/json, text/event-stream"}
                sent |= {} if token is None else {"authorization": f"Bearer {token}"}
                found.append((await client.post("/mcp", json=HELLO, headers=sent)).status_code)
            return found

    assert anyio.run(statuses, None, "wrong", "secrets", "secret") == [401, 401, 401, 200]


def _request(number: object, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


ODD_IDS: tuple[object, ...] = (None, [1], {}, 1.5, "1", -1)
GARBAGE: tuple[bytes, ...] = (
    b"not json",
    b"\xff\xfe\x00\x80",
    b"\0\0",
    b"   ",
    b"a" * 5_000_000,
    b"[" * 100_000,
    _request(7, "ping", long="a" * 5_000_000),
    b'{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}",
    json.dumps([]).encode(),
    json.dumps([json.loads(_request(each, "ping")) for each in (3, 4)]).encode(),
    json.dumps({"jsonrpc": "2.0"}).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 77, "result": {}}).encode(),
    *(_request(number, "ping") for number in ODD_IDS),
    _request(9, "no/such"),
    b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":[1]}',
    _request(11, "tools/call", name="no such", arguments={}),
    _request(12, "tools/call", name="history_show", arguments={"index": "x\0"}),
    _request(13, "tools/call", name="history_search", arguments={"query": "\ud800"}),
    b'{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"history_show","arguments":{"index":'
    + b"9" * 400
    + b"}}}",
    _request(15, "prompts/get", name="no such"),
    _request(16, "resources/read", uri="history://entry/../../etc/passwd"),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "none"}}).encode(),
)


def test_it_speaks_over_stdin_and_survives_garbage(store: str) -> None:
    """Whatever a client sends, before the handshake and after it, the next request is answered and stderr stays empty."""
    begun = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    asked = _request(99, "tools/call", name="stuck_check", arguments={"session": "stuck"})
    lines = (*GARBAGE, json.dumps(HELLO).encode(), begun, *GARBAGE, asked)
    with subprocess.Popen(
        [sys.executable, "-m", "ctxmgr", "mcp", "--store", store, "--read-only"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        limit = threading.Timer(60, server.kill)
        limit.start()
        threading.Thread(target=_fed, args=(server.stdin, lines), daemon=True).start()
        answers: dict[str, Any] = {}
        for line in server.stdout:
            answer = json.loads(line)
            answers[json.dumps(answer.get("id"))] = answer
            if answer.get("id") == 99:
                break
        server.stdin.close()
        said = server.stderr.read()
        limit.cancel()

    assert (server.returncode, said) == (0, b"")
    assert answers["1"]["result"]["serverInfo"]["name"] == "ctxmgr"
    assert answers["99"]["result"]["structuredContent"]["verdict"] == "loop"
    assert {name for name, answer in answers.items() if "error" in answer} >= {"9", "15", "16"}
    assert all(answers[name]["result"]["isError"] for name in ("11", "12", "14"))


@pytest.mark.slow
def test_what_is_no_request_is_answered(store: str) -> None:
    """A line that is no JSON, or no message of JSON-RPC, gets an error with its id where it has one; a blank line gets none."""
    lines = (
        b"garbage", b"", b"[]", b'{"jsonrpc":"2.0","id":901}', b'{"jsonrpc":"1.0","id":"q","method":"ping"}', b"\xff{",
        json.dumps(HELLO).encode(),
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "ctxmgr", "mcp", "--store", store, "--read-only"],
        input=b"\n".join(lines) + b"\n", capture_output=True, timeout=60,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert [(each["id"], each["error"]["code"]) for each in answers if "error" in each] == [
        (None, -32700), (None, -32600), (901, -32600), ("q", -32600), (None, -32700),
    ]  # fmt: skip
    assert [each["id"] for each in answers if "result" in each] == [1]
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("history_list", {"foo": 1}, "invalid: unknown argument 'foo' (arguments: session, "),
        ("history_list", {"limit": "many"}, "invalid: argument 'limit': Input should be a valid integer"),
        ("tried_before", {"action": "Read"}, "invalid: argument 'input' is missing"),
        ("continuation", {"only-session": True}, "unknown argument 'only-session'"),
    ],
)
def test_wrong_arguments_are_refused_in_plain_words(store: str, name: str, given: dict[str, Any], said: str) -> None:
    """A misspelt argument is not left out in silence, and a refusal holds no address of another project's pages."""
    told = refusal(Tools(store, readonly=True), name, **given)

    assert said in told
    assert "https://" not in told


def _fed(stream: IO[bytes], lines: Sequence[bytes]) -> None:
    for line in lines:
        stream.write(line + b"\n")
    stream.flush()
