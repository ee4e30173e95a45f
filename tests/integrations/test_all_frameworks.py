"""The guards of Python frameworks: the examples of docs/frameworks.md with the real packages and scripted models.

``make test-frameworks`` has the packages; elsewhere the tests of those that are absent are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import AttemptsUsedUp
from ctxmgr.integrations.guarded_run import GuardedRun, with_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
BLOCKS: dict[str, str] = dict(re.findall(r"^## ([^\n]+)\n+```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
COMMAND = {"command": "python3 -m unittest test_calc"}
OUTPUT = "Exit code 1\nImportError: No module named 'calc'"
MOVED_ON = "I was told, and go another way."
GAVE_UP = "Nobody told me."

pytestmark = pytest.mark.usefixtures("empty_project")  # the examples keep their history in the folder


@pytest.fixture(autouse=True)
def event_loop_of_the_thread() -> Iterator[None]:
    """Give the thread an event loop, and close it: the ``run_sync`` of a framework would make one and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def _ran(name: str, **given: Any) -> tuple[str, list[dict[str, Any]]]:
    """Run the example of a framework; return its answer, and the records of its history."""
    names: dict[str, Any] = {"__name__": "example", **given}
    exec(compile(BLOCKS[name], f"frameworks.md, {name}", "exec"), names)
    return names["answer"], [json.loads(line) for line in Path("run.jsonl").read_text("utf-8").splitlines()]


def _proven(answer: str, records: list[dict[str, Any]], *, status: str = "ok") -> None:
    """Three rounds were recorded with the task, one continuation was handed over, and the agent read it."""
    assert answer == MOVED_ON
    assert [row["data"]["text"] for row in records if row.get("type") == "user_message"] == ["Make the test pass."]
    assert [row["status"] for row in records if row["kind"] == "result"] == [status] * 3
    assert {row["agent"] for row in records if row["kind"] == "entry"} == {"coder"}
    assert [row["kind"] for row in records].count("continuation") == 1
    assert [row["outcome"] for row in records if row["kind"] == "sessionEnd"] == ["completed"]


def _told(text: str, calls: int) -> str | None:
    """Return what a scripted model says: nothing, and so the same call again, until it reads a continuation."""
    return MOVED_ON if "[ctxmgr] You are going in circles" in text else GAVE_UP if calls > 8 else None


def test_the_page_has_an_example_of_each_framework() -> None:
    """Ten lines each, imports and empty lines aside."""
    assert list(BLOCKS) == ["LangGraph", "LangChain", "OpenAI Agents SDK", "pydantic-ai", "Claude Agent SDK"]
    for name, block in BLOCKS.items():
        lines = [line for line in block.splitlines() if line and not line.startswith(("import", "from"))]
        assert len(lines) <= 10, name


def _langchain_model() -> Any:
    models: Any = pytest.importorskip("langchain_core.language_models")
    messages: Any = import_module("langchain_core.messages")
    outputs: Any = import_module("langchain_core.outputs")

    class Scripted(models.BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, said: Any, *_: Any, **__: Any) -> Any:
            text = _told(" ".join(str(each.content) for each in said), len(said) // 2)
            calls = [{"name": "run_tests", "args": COMMAND, "id": f"call{len(said)}"}]
            answer = messages.AIMessage(text or "", tool_calls=[] if text else calls)
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=answer)])

    return Scripted()


def _langchain_tool(*, fails: bool = False) -> Any:
    def run_tests(command: str) -> str:
        """Run the tests."""
        if fails:
            raise RuntimeError(OUTPUT)
        return OUTPUT

    return import_module("langchain_core.tools").tool(run_tests)


@pytest.mark.requirement("LV-frameworks")
@pytest.mark.parametrize("name", ["LangGraph", "LangChain"])
def test_langgraph_hands_the_continuation_over_behind_a_result(name: str) -> None:
    """A graph of one's own, and a ready agent."""
    pytest.importorskip("langgraph" if name == "LangGraph" else "langchain")
    _proven(*_ran(name, model=_langchain_model(), run_tests=_langchain_tool()))


@pytest.mark.requirement("LV-frameworks")
def test_langgraph_hands_it_over_behind_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that raises, where the graph answers errors: the text stands in that answer; awaited tools too."""
    import asyncio

    node: Any = pytest.importorskip("langgraph.prebuilt")
    graph: Any = import_module("langgraph.graph")
    from ctxmgr.integrations.langgraph import LangGraphGuard

    model, tool = _langchain_model(), _langchain_tool(fails=True)
    for awaited in (False, True):
        with LangGraphGuard(f"run{awaited}.jsonl", agent="coder") as guard:
            tools = node.ToolNode(
                [tool], wrap_tool_call=guard.wrap_tool_call, awrap_tool_call=guard.awrap_tool_call, handle_tool_errors=True
            )
            built = graph.StateGraph(graph.MessagesState)

            def _model(state: Any) -> Any:
                return {"messages": [model.invoke(state["messages"])]}

            built.add_node("model", _model)
            built.add_node("tools", tools)
            built.add_edge(graph.START, "model")
            built.add_conditional_edges("model", node.tools_condition)
            built.add_edge("tools", "model")
            given = {"messages": [("user", "Make the test pass.")]}
            ran = asyncio.run(built.compile().ainvoke(given)) if awaited else built.compile().invoke(given)
        rows = [json.loads(line) for line in Path(f"run{awaited}.jsonl").read_text("utf-8").splitlines()]
        _proven(ran["messages"][-1].content, rows, status="error")


@pytest.mark.requirement("LV-frameworks")
@pytest.mark.parametrize("fails", [False, True])
def test_openai_agents_are_handed_the_continuation_with_the_next_input(fails: bool) -> None:
    """The model of the SDK's own interface reads it in its fourth request."""
    agents: Any = pytest.importorskip("agents")
    responses: Any = import_module("openai.types.responses")

    class Scripted(agents.Model):
        def __init__(self) -> None:
            self.calls = 0

        async def get_response(self, *_: Any, **given: Any) -> Any:
            self.calls += 1
            text = _told(json.dumps(given["input"], default=str), self.calls)
            said = responses.ResponseOutputText(text=text or "", type="output_text", annotations=[])
            message = responses.ResponseOutputMessage(
                id="m", role="assistant", status="completed", type="message", content=[said]
            )
            call = responses.ResponseFunctionToolCall(
                call_id=f"call{self.calls}", name="run_tests", arguments=json.dumps(COMMAND), type="function_call"
            )
            return agents.ModelResponse(output=[message if text else call], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("nobody asked for a stream")

    def run_tests(command: str) -> str:
        """Run the tests."""
        if fails:
            raise RuntimeError(OUTPUT)
        return OUTPUT

    model = Scripted()
    tool = agents.function_tool(run_tests)
    _proven(*_ran("OpenAI Agents SDK", model=model, run_tests=tool), status="error" if fails else "ok")
    assert model.calls == 4


@pytest.mark.cases(1)
@pytest.mark.requirement("LV-frameworks")
@pytest.mark.parametrize("kind", ["text", "object", "retry"])
def test_pydantic_ai_hands_the_continuation_over_behind_a_result(kind: str) -> None:
    """Behind a text, beside an object, and within what asks the model for a retry."""
    framework: Any = pytest.importorskip("pydantic_ai")
    messages: Any = import_module("pydantic_ai.messages")
    function: Any = import_module("pydantic_ai.models.function")

    def answer(said: Any, _info: Any) -> Any:
        text = _told(str(said), len(said) // 2)
        part = messages.TextPart(text) if text else messages.ToolCallPart("run_tests", COMMAND)
        return messages.ModelResponse(parts=[part])

    def run_tests(command: str) -> Any:
        """Run the tests."""
        if kind == "retry":
            raise framework.ModelRetry(OUTPUT)
        return OUTPUT if kind == "text" else {"output": OUTPUT}

    tool = framework.Tool(run_tests, max_retries=9)
    ran = _ran("pydantic-ai", model=function.FunctionModel(answer), run_tests=tool)
    _proven(*ran, status="error" if kind == "retry" else "ok")


@pytest.fixture
def claude_model(empty_project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve Claude Code a scripted model, and return the folder of its requests."""
    pytest.importorskip("claude_agent_sdk")
    requests = empty_project / "requests"
    requests.mkdir()
    (empty_project / "test_calc.py").write_text("import calc\n")
    script = ROOT / "tests" / "clients" / "scripted_model.py"
    own = {**os.environ, "PYTHONPATH": str(ROOT / "fixtures" / "make_runs")}
    command = [sys.executable, script, json.dumps([COMMAND["command"]] * 9), str(requests)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as server:
        assert server.stdout is not None
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.stdout.readline().strip()}")
        for name, value in (
            ("ANTHROPIC_API_KEY", "none"),
            ("IS_SANDBOX", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ):
            monkeypatch.setenv(name, value)
        yield requests
        server.terminate()


@pytest.mark.requirement("LV-frameworks")
def test_the_claude_agent_sdk_hands_the_continuation_over_as_context(claude_model: Path) -> None:
    """The SDK with the Claude Code that it brings: the fourth request to the model holds it."""
    _proven(*_ran("Claude Agent SDK"), status="error")
    told = ["[ctxmgr] You are going in circles" in path.read_text("utf-8") for path in sorted(claude_model.iterdir())]
    assert told == [False, False, False, True]


@pytest.mark.requirement("LV-frameworks")
def test_a_person_is_needed_after_two_continuations() -> None:
    """Whatever the framework: told, told again, and then the run ends."""
    run = GuardedRun("run.jsonl", agent="coder")

    def go_on() -> None:
        with run:
            run.hear(["Make the test pass."])
            for _ in range(20):
                run.finish(run.begin("Bash", COMMAND), error=OUTPUT)

    with pytest.raises(AttemptsUsedUp):
        go_on()
    assert len(run.told) == 2
    assert run.told[0].startswith("[ctxmgr] You are going in circles: 3 times the same call")
    assert '"outcome":"failed"' in Path("run.jsonl").read_text("utf-8")


@pytest.mark.requirement("LV-frameworks")
def test_a_healthy_run_is_told_nothing() -> None:
    """Fifty varied calls; a person's word is recorded once however often a framework shows the conversation."""
    with GuardedRun("run.jsonl") as run:
        for number in range(50):
            run.hear(["Read them all."])
            entry = run.begin("Read", {"path": f"{'x' * number}.py"})
            assert run.finish(entry, f"class {'Y' * number}: pass") is None
    kinds = [json.loads(line).get("type") for line in Path("run.jsonl").read_text("utf-8").splitlines()]
    assert (run.told, kinds.count("user_message")) == ([], 1)


def test_a_text_is_put_behind_any_content() -> None:
    """A text grows, a list of blocks gets one more."""
    assert with_text("a", "b") == "a\n\nb"
    assert with_text([{"type": "text", "text": "a"}], "b") == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
