"""How a call ended, what it was given and returned, and which words are a person's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.base import Log
from ctxmgr.importers.chat import judge_result, read_item, unwrap
from ctxmgr.types.import_report import FileCount
from tests.growth import grows_linearly

DENIED = [
    "The user rejected permission to use this specific tool call.",
    "Error: The user rejected permission to use this specific tool call with the following feedback: no",
    "PermissionRejectedError: The user rejected permission to use this specific tool call.",
    "Error: The user has specified a rule which prevents you from using this specific tool call.",
    "[Operation Cancelled] Reason: User did not allow tool call",
    "Tool execution denied by policy.",
    "The user denied this operation.",
    "The user denied this edit. The file was NOT modified and still contains its original content.",
    "This tool call was rejected by the user and not performed (this was not a tool or system failure).",
    "The tool call was denied.",
    "Tool execution was not approved.",
    "Tool execution was blocked by an extension",
    'Qwen Code requires permission to use "write_file", but that permission was declined (non-interactive mode).',
]
ABORTED = [
    "Tool execution aborted",
    "[Operation Cancelled] Reason: User cancelled tool execution.",
    "[Operation Cancelled] User cancelled the operation.",
    "Skipped due to queued user message.",
    "Tool execution was cancelled because the user sent a follow-up message.",
    "aborted by user after 3.2s",
    "Operation aborted",
    "half of the output\n\nCommand aborted",
]
FAILED = [
    "Permission denied",
    "The operation timed out",
    "Error: request failed with status 403: access denied by the server",
    "make: *** [test] Interrupt",
    "transaction aborted: deadlock detected",
    "the user table was rejected: no such column",
    "Command aborted is what it printed, and then it went on\nexit 1",
]


@pytest.mark.parametrize("words", DENIED)
def test_a_refusal_is_told_from_a_failure(words: str) -> None:
    """Whatever stands before it: the kind of an error, an article, a mark of the client's."""
    for shown in (words, {"error": words}):
        status, _, error = judge_result({"is_error": True}, shown)
        assert (status, error) == ("denied", words)


@pytest.mark.parametrize("words", ABORTED)
def test_an_abort_is_told_from_a_failure(words: str) -> None:
    """A call that was stopped has not failed; one that succeeded may print such words."""
    assert judge_result({"is_error": True}, words)[0] == "interrupted"
    assert judge_result({}, words)[0] == "ok"


@pytest.mark.parametrize("words", FAILED)
def test_a_failure_that_sounds_like_either_is_one(words: str) -> None:
    """A system may deny and abort, too."""
    assert judge_result({"is_error": True}, words)[0] == "error"


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ({"type": "text", "value": "fine"}, "ok"),
        ({"type": "error-text", "value": "boom"}, "error"),
        ({"type": "error-json", "value": {"message": "boom"}}, "error"),
        ({"type": "execution-denied", "reason": "no"}, "denied"),
        ({"type": "text", "text": "an MCP part has no value"}, "ok"),
    ],
)
def test_a_type_tells_how_a_call_ended(shown: dict[str, Any], status: str) -> None:
    """The AI SDK's results say so by their type; an object of another kind is kept as it is."""
    found, output, _ = judge_result({}, shown)
    assert found == status
    assert output == shown.get("value", shown.get("reason", shown))


def test_a_notice_of_the_client_is_no_word_of_a_person() -> None:
    """What Cline puts into a person's words is taken out again."""
    words = '<user_input mode="act">Do it<mode_notice>You are in act mode</mode_notice></user_input>'
    assert unwrap(words) == "Do it"


@pytest.mark.parametrize("shown", [[{"id": 1, "data": "x"}], [{"data": {"rows": 2}}, {"type": "user", "data": "a"}]])
def test_a_member_called_data_is_no_picture(shown: list[Any]) -> None:
    """Records of an API are kept whole: what differs in them would look the same without it, and be taken for a loop."""
    assert judge_result({}, shown)[1] == shown


@pytest.mark.parametrize("kind", ["image", "audio", "media", "image-data", "file-data", "blob"])
def test_the_bytes_of_a_medium_are_left_out(kind: str) -> None:
    """A result that shows a picture beside its words has megabytes of it."""
    shown = [{"type": kind, "data": "iVBORw0KGgo=", "mimeType": "image/png"}, {"type": "row", "n": 1}]
    assert judge_result({}, shown)[1] == [{"type": "row", "n": 1}]


@pytest.mark.parametrize(
    ("item", "given", "shown"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": '{"not": "parsed"}'}, '{"not": "parsed"}', None),
        ({"type": "function_call", "call_id": "c", "name": "sh", "arguments": '{"a": 1}'}, {"a": 1}, None),
        ({"type": "code_interpreter_call", "id": "c", "code": "1+1", "outputs": [{"logs": "2"}]}, "1+1", [{"logs": "2"}]),
        ({"type": "file_search_call", "id": "c", "queries": ["x"], "results": [{"text": "y"}]}, ["x"], [{"text": "y"}]),
    ],
)
def test_what_a_call_was_given_and_answered_is_read_under_each_name(item: dict[str, Any], given: Any, shown: Any) -> None:
    """Each kind of item of the Responses API names it otherwise."""
    log = Log("messages", Path("a.json"), FileCount(Path("a.json")))
    t = log.session("s")
    read_item(t, item, None, 1)
    call, *results = [record for record in log.take(final=True) if record["kind"] in ("entry", "result")]
    assert call["input"] == given
    assert [result["output"] for result in results] == ([] if shown is None else [shown])


@pytest.mark.parametrize(
    ("words", "bare"),
    [
        (" <task> Do it\n now </task>\n", "Do it\n now"),
        ("<task>a</task> and <task>b</task>", "a</task> and <task>b"),
        ("<task>half", "<task>half"),
        ("<task>a</answer>", "<task>a</answer>"),
        ("a <mode_notice>x</mode_notice> b\n<environment_details>y</environment_details>\n", "ab"),
        ("a <mode_notice>x <environment_details>y</environment_details> b", "a <mode_notice>xb"),
        (" <mode_notice>x", " <mode_notice>x"),
    ],
)
def test_only_whole_wrappers_are_taken_off(words: str, bare: str) -> None:
    """A tag that is not closed, or closed by another, is what the person wrote."""
    assert unwrap(words) == bare


@pytest.mark.parametrize(
    ("head", "unit", "size"),
    [("<task>", " ", 300), ("<task>", "</task> ", 16_000), ("<environment_details", " ", 8_000), ("", "<mode_notice>", 40_000)],
)
def test_wrappers_cost_linear_time(head: str, unit: str, size: int) -> None:
    """Whatever a hostile text repeats behind a tag."""
    assert grows_linearly(lambda many: unwrap(head + unit * (many // len(unit))), size)
