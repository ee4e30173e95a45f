"""What Codex tools return, in the wrapping of every era."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxmgr.importers.codex.calls import Facts, from_facts, read_output


@pytest.mark.parametrize(
    ("raw", "output", "code", "duration"),
    [
        (json.dumps({"output": "a\n", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}), "a\n", 2, 100),
        ("Exit code: 2\nWall time: 1.5 seconds\nOutput:\na\n", "a\n", 2, 1500),
        ("Exit code: 2\nWall time: 0 seconds\nTotal output lines: 900\nOutput:\na", "a", 2, 0),
        (
            "Chunk ID: f37a64\nWall time: 0.2500 seconds\nProcess exited with code 2\nOriginal token count: 4\nOutput:\na",
            "a",
            2,
            250,
        ),
        ("Chunk ID: f37a64\nWall time: 10.0 seconds\nProcess exited with code 2\nOutput:\n", "", 2, 10000),
        ([{"type": "input_text", "text": "Exit code: 2\nWall time: 1 seconds\nOutput:\na"}], "a", 2, 1000),
        ({"content": "Exit code: 2\nWall time: 1 seconds\nOutput:\na", "success": False}, "a", 2, 1000),
    ],
)
def test_wrappings_come_off(raw: Any, output: str, code: int, duration: float) -> None:
    """Every era's header yields exit code and time and leaves the command's own output."""
    outcome = read_output({"output": raw}, None)
    assert (outcome.output, outcome.meta, outcome.duration_ms) == (output, {"exitCode": code}, duration)
    assert (outcome.status, outcome.error) == ("error", {"type": "exitCode", "message": "exit code 2"})


@pytest.mark.parametrize(
    ("raw", "status", "kind"),
    [
        ("unsupported call: no_such_tool", "error", "unknownTool"),
        ("unsupported custom tool call: x", "error", "unknownTool"),
        ("exec command rejected by user", "denied", "denied"),
        ("patch rejected: writing outside of the project; rejected by user approval settings", "denied", "denied"),
        ("user rejected MCP tool call", "denied", "denied"),
        ("approval policy is Never; reject command", "denied", "denied"),
        ("aborted", "interrupted", "interrupted"),
        ("aborted by user after 4.7s", "interrupted", "interrupted"),
        ("Wall time: 4.7 seconds\naborted by user", "interrupted", "interrupted"),
        ("apply_patch verification failed: no such file", "error", "toolError"),
        ("failed to parse function arguments: EOF", "error", "toolError"),
        ("Exit code: 124\nWall time: 5 seconds\nOutput:\ncommand timed out after 5000 milliseconds\n", "error", "timeout"),
        (json.dumps({"content": [{"type": "text", "text": "bad"}], "isError": True}), "error", "toolError"),
        ({"content": "it broke", "success": False}, "error", "toolError"),
    ],
)
def test_failures_are_told_from_the_words(raw: Any, status: str, kind: str) -> None:
    """Codex puts refusals, aborts and failures into plain text; each gets its status and type."""
    outcome = read_output({"output": raw}, None)
    assert outcome.error is not None
    assert (outcome.status, outcome.error["type"]) == (status, kind)
    assert outcome.error["message"]


@pytest.mark.parametrize(
    "raw",
    [
        "Plan updated",
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nunsupported call: printed by the command",
        "Exit code: 0\nWall time: 0 seconds\nOutput:\naborted by user",
        "Chunk ID: a1\nWall time: 10.0 seconds\nProcess running with session ID 77\nOutput:\nstill going",
        json.dumps({"output": "rejected by user", "metadata": {"exit_code": 0}}),
        json.dumps({"metadata": 3}),
        "",
        None,
        [],
        {"odd": True},
        7,
    ],
)
def test_success_stays_success(raw: Any) -> None:
    """What a command prints is no verdict on it, and odd shapes are kept as they are."""
    outcome = read_output({"output": raw}, None)
    assert (outcome.status, outcome.error) == ("ok", None)


def test_output_that_only_resembles_a_header_is_kept() -> None:
    """Without the line that ends the header, nothing is cut off."""
    text = "Exit code: 5\nis what the manual says"
    outcome = read_output({"output": text}, None)
    assert (outcome.output, outcome.meta) == (text, {})


def test_a_running_process_names_its_session() -> None:
    """A command that outlives its call is still running under that number."""
    outcome = read_output({"output": "Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 77\nOutput:\nx"}, None)
    assert (outcome.meta, outcome.output) == ({"running": "77"}, "x")


def test_earlier_facts_fill_what_the_text_leaves_out() -> None:
    """The event's measured time stands above the rounded one, its refusal above an empty text."""
    timed = read_output({"output": "Exit code: 1\nWall time: 1 seconds\nOutput:\nx"}, Facts("failed", 1, 987.5, "x"))
    assert timed.duration_ms == 987.5
    declined = read_output({"output": ""}, Facts("declined"))
    assert (declined.status, declined.error) == ("denied", {"type": "denied", "message": "declined"})
    assert from_facts(Facts("failed", -1)).status == "error"


def test_pictures_leave_only_their_size() -> None:
    """A screenshot's bytes are not text to keep."""
    outcome = read_output({"output": [{"type": "input_image", "image_url": "data:" + "A" * 995}]}, None)
    assert outcome.output == [{"type": "input_image", "image_url": "<1,000 characters>"}]
