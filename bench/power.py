"""Cut the power under a recorder and compare what is left with a ledger of what was acknowledged.

    python bench/power.py --store sqlite --level process --cycles 20

The history lies on an ext4 file system of its own in a file, which is shut down without flushing its journal
(``FS_IOC_SHUTDOWN``) and mounted again: what was not synced is gone, as after a real power cut. Needs root, a loop device and
``mkfs.ext4``. The ledger and the anchors lie outside, so they survive. After each cut the history must be a prefix
of what was recorded; at level ``os`` all that was acknowledged, at level ``process`` all but the last second; and
``verify`` must find nothing wrong. Exit code 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ctxmgr.log.journal import Durability
from ctxmgr.recorder import Recorder
from ctxmgr.store import open_store

_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING = struct.pack("I", 2)
_SLOT = struct.Struct("<d")
_CAPACITY = 200_000
_NEW_NAMESPACE = 0x00020000  # CLONE_NEWNS


def available() -> str | None:
    """Return why the power can't be cut here, or None when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/dev/loop-control"):
        return "needs a loop device"
    if subprocess.run(["sh", "-c", "command -v mkfs.ext4"], capture_output=True, check=False).returncode:
        return "needs mkfs.ext4"
    return None


def _record(path: Path, level: Durability, ledger: mmap.mmap, pause: float) -> None:
    recorder = Recorder(path, session="power", durability=level)
    for number in range(_CAPACITY):
        recorder.entry("agent", "act", {"n": number, "text": "x" * 200})
        _SLOT.pack_into(ledger, 8 + number * _SLOT.size, time.monotonic())
        struct.pack_into("<Q", ledger, 0, number + 1)
        if pause:
            time.sleep(pause)
    signal.pause()


def cycle(folder: Path, store: str, level: Durability, *, pause: float, seconds: float) -> dict[str, object]:
    """Record for some seconds, cut the power, and return what became of it; call it in a mount namespace of its own."""
    image, root = folder / "image", folder / "root"
    with image.open("wb") as stream:
        stream.truncate(1 << 30)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    root.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(root)], check=True)
    path = root / ("history.jsonl" if store == "jsonl" else "history.db")
    ledger = mmap.mmap(-1, 8 + _CAPACITY * _SLOT.size)
    child = os.fork()
    if child == 0:
        try:
            _record(path, level, ledger, pause)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    time.sleep(seconds)
    device = os.open(root, os.O_RDONLY)
    moment, acknowledged = time.monotonic(), struct.unpack_from("<Q", ledger)[0]
    fcntl.ioctl(device, _SHUTDOWN, _WITHOUT_FLUSHING)
    os.close(device)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    subprocess.run(["umount", str(root)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(root)], check=True)
    try:
        found, wrong = _left(path)
    finally:
        subprocess.run(["umount", str(root)], check=True)
    kept = len(found)
    ages = [moment - _SLOT.unpack_from(ledger, 8 + number * _SLOT.size)[0] for number in range(kept, acknowledged)]
    return {
        "acknowledged": acknowledged, "lost": max(0, acknowledged - kept), "oldest": round(max(ages, default=0.0), 3),
        "gaps": int(found != list(range(kept))), "wrong": wrong,
    }  # fmt: skip


def _left(path: Path) -> tuple[list[int], list[str]]:
    """Return the numbers of the entries that are left, and what `verify` finds wrong."""
    if not path.exists():
        return [], []
    store = open_store(str(path), create=True)
    try:
        numbers = [int(record["input"]["n"]) for record in store.sessions.records(None) if record["kind"] == "entry"]
        # Half a record, or zeros where it was to be, is what a power cut leaves in a log; it is read past.
        return numbers, [item.reason for item in store.examine().damaged if item.kind != "unreadable"]
    finally:
        store.close()


def run(store: str, level: Durability, cycles: int, folder: Path, *, seed: int = 1, seconds: float = 3.0) -> dict[str, object]:
    """Cut the power so many times, in a mount namespace of its own, and add up what was found."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACE):
        raise OSError(ctypes.get_errno(), "can't make a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    source = random.Random(seed)
    results = [
        cycle(folder, store, level, pause=source.choice((0.0002, 0.002, 0.1)), seconds=source.uniform(0.2, 3.0))
        for _ in range(cycles)
    ]
    total = {name: sum(int(str(each[name])) for each in results) for name in ("acknowledged", "lost", "gaps")}
    oldest = max(float(str(each["oldest"])) for each in results)
    wrong = sorted({str(reason) for each in results for reason in list(each["wrong"])})  # type: ignore[call-overload]
    broken = bool(total["gaps"] or wrong or (total["lost"] if level == "os" else oldest > 1.0))
    return {
        "store": store, "level": level, "cycles": cycles, "seed": seed, **total, "oldest lost": oldest, "wrong": wrong,
        "broken": broken,
    }  # fmt: skip


def apart(store: str, level: str, cycles: int, folder: Path, *, seconds: float = 3.0) -> dict[str, object]:
    """Do the same in a process of its own, whose mounts go with it; ``skip`` says why it can't be done."""
    line = [sys.executable, __file__, "--store", store, "--level", level, "--cycles", str(cycles), "--folder", str(folder)]
    ended = subprocess.run([*line, "--seconds", str(seconds), "--seed", "1"], capture_output=True, text=True, check=False)
    if not ended.stdout:
        return {"skip": ended.stderr.strip()[-300:] or "no answer"}
    found: dict[str, object] = json.loads(ended.stdout)
    return found


def main() -> int:
    """Run from the command line and print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", choices=["jsonl", "sqlite"], default="sqlite")
    parser.add_argument("--level", choices=["process", "os"], default="process")
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0, help="for which a cycle records at most")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    if reason := available():
        sys.stderr.write(f"the power can't be cut here: {reason}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        place = options.folder or Path(folder)
        found = run(options.store, options.level, options.cycles, place, seed=options.seed, seconds=options.seconds)
    print(json.dumps(found))
    return int(bool(found["broken"]))


if __name__ == "__main__":
    sys.exit(main())
