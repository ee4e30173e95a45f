"""The tap: what passes between a client and its agent is left as it is, and recorded."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.live import tap
from ctxmgr.live.tap import FROM_CLIENT, HEADER, LOST, Copies, write_all
from ctxmgr.store import open_store
from tests.cli.console import process
from tests.live.scene import messages

AGENT_FILE = Path(__file__).with_name("acp_agent.py")
SECONDS = 60


def _command(folder: Path, mode: str, *options: str, store: str = "history.db") -> list[str]:
    tap = [sys.executable, "-m", "ctxmgr", "tap", "--store", str(folder / store), *options, "--"]
    return [*tap, sys.executable, str(AGENT_FILE), mode]


def _noise(size: int) -> bytes:
    """Return bytes of every kind: lines of JSON and of none, long ones, binary ones, and no line end at the end."""
    chance = random.Random(1)
    parts = [b"garbage\n", b'{"jsonrpc": "2.0"\n', b"\n\n", b"[]\n", b'{"id": [], "method": 5}\n', b"[" * 100_000 + b"\n"]
    while sum(map(len, parts)) < size:
        parts.append(chance.randbytes(chance.choice([1, 100, 70_000])))
    return b"".join([*parts, b"x" * (size // 2), b"the end"])


@pytest.mark.requirement("LV-tap")
def test_every_byte_passes_as_it_is_both_ways(tmp_path: Path) -> None:
    """Garbage of megabytes comes back from an echo as it was sent, and the agent's exit code is the tap's."""
    given = _noise(6_000_000)
    ran = subprocess.run(_command(tmp_path, "echo"), input=given, capture_output=True, check=False, timeout=SECONDS)

    assert ran.stdout == given
    assert ran.returncode == 7
    assert b"were no message of the protocol" in ran.stderr


@pytest.mark.slow
@pytest.mark.requirement("LV-tap")
@pytest.mark.parametrize("fault", ["locked", "a folder", "no place", "full"])
def test_a_store_that_refuses_holds_up_nothing(fault: str, tmp_path: Path) -> None:
    """Locked, not to be opened or without room: the same bytes, and a word on stderr."""
    store = "history.db"
    if fault == "locked":
        with closing(open_store(str(tmp_path / store), create=True)):
            pass
    elif fault == "a folder":
        (tmp_path / store).mkdir()
    else:
        store = "none/of/it.db" if fault == "no place" else "full.jsonl"
    if fault == "no place":
        (tmp_path / "none").write_text("")
    if fault == "full":
        (tmp_path / store).symlink_to("/dev/full")
    given = b"".join(messages("one"))
    holder = None
    if fault == "locked":
        holding = (
            "import sys; from ctxmgr.store import open_store; s = open_store(sys.argv[1])\n"
            "with s.engine.transaction(): print('held', flush=True); input()"
        )
        holder = subprocess.Popen(
            [sys.executable, "-c", holding, str(tmp_path / store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()
    try:
        command = _command(tmp_path, "echo", store=store)
        ran = subprocess.run(command, input=given, capture_output=True, check=False, timeout=SECONDS)
    finally:
        if holder is not None:
            holder.communicate(b"\n", timeout=SECONDS)

    assert (ran.stdout, ran.returncode) == (given, 7)
    if fault != "locked":
        assert b"ctxmgr: " in ran.stderr


def _conversation(folder: Path, mode: str) -> tuple[int, bytes, bytes]:
    """Talk to an agent as a client does: what follows is sent when an answer came, and every permission is given."""
    heard = b""
    with subprocess.Popen(_command(folder, mode), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        assert tap.stdout is not None
        assert tap.stderr is not None
        for line in messages("Fix it.", *(["Again."] if mode == "turns" else [])):
            tap.stdin.write(line)
            tap.stdin.flush()
            answered, got = False, b""
            while not answered and (got := tap.stdout.readline()).endswith(b"\n"):
                heard += got
                message = json.loads(got)
                answered = "result" in message
                if message.get("method") == "session/request_permission":
                    outcome = {"outcome": {"outcome": "selected", "optionId": "y"}}
                    tap.stdin.write(json.dumps({"id": message["id"], "result": outcome}).encode() + b"\n")
                    tap.stdin.flush()
            if not answered:
                heard += got
        tap.stdin.close()
        return tap.wait(SECONDS), heard + tap.stdout.read(), tap.stderr.read()


def _recorded(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process("export", "--store", str(folder / "history.db")).out.splitlines()]


@pytest.mark.requirement("LV-tap")
def test_a_conversation_is_recorded(tmp_path: Path) -> None:
    """Calls with input and result, words put together, waits for a permission, and the ends of turns, in their order."""
    code, out, err = _conversation(tmp_path, "turns")
    assert (code, err) == (0, b"")
    assert out.count(b'"stopReason": "end_turn"') == 2
    records = _recorded(tmp_path)

    turn = ["user_message", "agent_thought_chunk", "waiting", "resume", "entry", "result", "agent_message_chunk", "turn_end"]
    assert [row.get("type", row["kind"]) for row in records] == ["session", *turn, *turn]
    entry, result = (next(row for row in records if row["kind"] == kind) for kind in ("entry", "result"))
    assert (entry["agent"], entry["action"], entry["input"]) == ("player", "execute", {"command": "pytest -q"})
    assert (result["status"], result["error"]["message"]) == ("error", "1 failed")
    assert [row["data"]["text"] for row in records if row.get("type") == "agent_thought_chunk"] == ["I run the tests."] * 2
    assert len({row["id"] for row in records if row["kind"] == "entry"}) == 2, "an id that comes again is another call"


@pytest.mark.requirement("LV-tap")
def test_an_agent_that_dies_leaves_its_call_open(tmp_path: Path) -> None:
    """Killed inside a message: what it said reaches the client, its end is told as a shell would, the call has no result."""
    code, out, _ = _conversation(tmp_path, "dies")

    assert code == 128 + 9
    assert out.endswith(b'{"jsonrpc": "2.0", "meth')
    assert [row["kind"] for row in _recorded(tmp_path) if row["kind"] in ("entry", "result")] == ["entry"]


@pytest.mark.requirement("LV-tap")
def test_a_client_that_dies_ends_the_agent(tmp_path: Path) -> None:
    """Both ends of the client closed, as when it is killed: the agent reads the end, and the tap ends with it."""
    with subprocess.Popen(_command(tmp_path, "turns"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        assert tap.stdout is not None
        tap.stdin.write(messages()[0])
        tap.stdin.flush()
        assert b"player" in tap.stdout.readline()
        tap.stdin.close()
        tap.stdout.close()
        assert tap.wait(SECONDS) == 0


@pytest.mark.slow
@pytest.mark.requirement("LV-tap")
def test_a_turn_that_hangs_is_cancelled_between_two_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order waits until the client's own line is whole; without the option nothing is ever added."""
    monkeypatch.chdir(tmp_path)
    Path("ctxmgr.toml").write_text("[detect]\ncall_seconds = 1\ncall_grace = 0.5\n")
    with subprocess.Popen(
        _command(tmp_path, "hangs", "--cancel-hung"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as tap:
        assert tap.stdin is not None
        assert tap.stdout is not None
        assert tap.stderr is not None
        own = b'{"jsonrpc": "2.0", "method": "x/note"}\n'
        tap.stdin.write(b"".join(messages("Fix it.")) + own[:10])
        tap.stdin.flush()
        while b"cancelled" not in (said := tap.stderr.readline()):
            assert said
        tap.stdin.write(own[10:])
        tap.stdin.flush()
        heard = json.loads(next(line for line in iter(tap.stderr.readline, b"") if line.startswith(b"[")))
        assert heard[0].encode() == own
        assert json.loads(heard[1]) == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "sess-1"}}
        tap.stdin.close()
        assert b'"cancelled"' in tap.stdout.read()
    assert "interrupt" in [row.get("type") for row in _recorded(tmp_path)]


def test_the_tap_refuses_what_it_can_not_start(tmp_path: Path) -> None:
    """No command, or one that is not there."""
    assert process("tap").code == 2
    ran = process("tap", "--store", str(tmp_path / "h.db"), "--", "/nonexistent/agent")
    assert ran.code == 2
    assert "can't run /nonexistent/agent" in ran.err


def _pieces(pipe: int) -> list[tuple[bytes, int]]:
    """Return the senders and sizes of the pieces that are in a pipe, up to its end."""
    with open(pipe, "rb") as stream:
        held, pieces = stream.read(), list[tuple[bytes, int]]()
    while held:
        sender, _, size = HEADER.unpack_from(held)
        pieces.append((sender, size))
        held = held[HEADER.size + (0 if sender == LOST else size) :]
    return pieces


def test_pieces_that_found_no_room_are_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dropped last is counted as well, and after a thousand pieces there is as much room as before."""
    entered, gate = threading.Semaphore(0), threading.Event()

    def write(pipe: int, data: bytes) -> None:
        entered.release()
        gate.wait()
        write_all(pipe, data)

    monkeypatch.setattr(tap, "write_all", write)
    monkeypatch.setattr(tap, "_MAX_HELD_BYTES", 2 * (HEADER.size + 10))
    gate.set()
    copied, pipe = os.pipe()
    copies = Copies(pipe)
    for _ in range(1000):
        copies.offer(FROM_CLIENT, b"1")
        entered.acquire()
    gate.clear()
    copies.offer(FROM_CLIENT, b"1")
    entered.acquire()
    # The thread holds one piece, and two more find room
    for _ in range(5):
        copies.offer(FROM_CLIENT, b"1234567890")
    threading.Timer(0.1, gate.set).start()
    copies.close(SECONDS)

    assert _pieces(copied)[1001:] == [(FROM_CLIENT, 10)] * 2 + [(LOST, 3)]
