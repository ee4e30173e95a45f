"""How a call ended, told by the words that clients put in the place of what a tool returned."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.importers.chat import judge_result, unwrap

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
