"""Commands that answer from a history: start-up, search, pages, detection; each a whole process beside its peers."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from bench.speed.figures import PYTHON
from bench.speed.harness import ROOT, SHORT, Bench, Rivals
from bench.speed.histories import ABSENT, COMMON, RARE, RARE_ACTION, History
from bench.speed.importing import duckdb_file, indexed, stored
from bench.speed.running import Program

START, SEARCH, PAGE, DETECT = "start-up", "search", "page at 0.9 N", "detect"
RG, JQ, LNAV, SQLITE, DUCKDB, UTILS = "rg -F", "jq", "lnav", "sqlite3 instr", "duckdb", "sqlite-utils"
_HITS = 50

# Ours is asked for what stands in our own tables, so that both read the same bytes.
_ENTRY = "SELECT record.body FROM entry JOIN record ON record.seq = entry.seq WHERE entry.session = 1 "
_SCAN = """
import duckdb, sys
place, text, most = sys.argv[1:4]
base = duckdb.connect(place, read_only=True)
columns = " OR ".join(f"contains(CAST({name} AS VARCHAR), ?)" for name in ("input", "output", "error", "data"))
rows = base.execute(f"SELECT id FROM history WHERE {columns} LIMIT {most}", [text] * 4).fetchall()
print(*(row[0] for row in rows), sep="\\n")
"""


def start_up(bench: Bench, history: History | None) -> None:
    """Measure commands that need no data, and with a history the reads against Python and sqlite-utils."""
    often = bench.rounds if bench.quick else 2 * bench.rounds  # a process of some milliseconds is soon disturbed
    for words in (["--version"], ["--help"], ["list", "--help"]):
        rivals = Rivals(bench.ours(*words), rounds=often)
        rivals.with_python(bench, "start")
        bench.compare(START, None, " ".join(words), rivals)
    if history is None:
        return
    store, place = str(stored(bench, history)), history.facts.entries * 2 // 3
    queries = {
        "list": (["list", "--limit", "20"], _ENTRY + "ORDER BY entry.idx LIMIT 20"),
        "show": (["show", f"@{place}"], _ENTRY + f"AND entry.idx = {place}"),
        "trace": (["trace", RARE_ACTION, "--limit", "20"],
                  _ENTRY + f"AND entry.action = '{RARE_ACTION.casefold()}' ORDER BY entry.idx LIMIT 20"),
    }  # fmt: skip
    for name, (words, sql) in queries.items():
        rivals = Rivals(bench.ours(*words, "--store", store, "--json", answer=ids), rounds=often)
        rivals.with_python(bench, "read")
        rivals.add(bench, UTILS, UTILS, partial(bench.peer, UTILS, "query", store, sql, answer=_bodies), "read.peer")
        bench.compare(START, history, f"{name} --json", rivals)
    for words in (["search", RARE], ["messages", "--limit", "20"], ["note", "list"], ["snapshot", "list"]):
        rivals = Rivals(bench.ours(*words, "--store", store, "--json"))
        rivals.with_python(bench)
        bench.compare(START, history, f"{' '.join(words[:2]) if words[1] == 'list' else words[0]} --json", rivals)
    rivals = Rivals(bench.ours("list", "--store", store, "--limit", "20"))
    rivals.with_python(bench)
    bench.compare(START, history, "list, drawn for a person", rivals)
    _in_a_project(bench, history, store, often)


def _in_a_project(bench: Bench, history: History, store: str, rounds: int) -> None:
    """List where agents work: in a project of Python, whose settings are somebody else's."""
    with tempfile.TemporaryDirectory() as project:
        shutil.copy(ROOT / "pyproject.toml", project)
        rivals = Rivals(bench.ours("list", "--store", store, "--json")._replace(folder=project), rounds=rounds)
        rivals.with_python(bench, "read")
        bench.compare(START, history, "list --json, beside a pyproject", rivals)


def ids(output: bytes) -> list[str]:
    """Return the ids of the records in an answer of ours, a list, a hit list or a single one."""
    data = json.loads(output)["data"]
    rows = cast("list[dict[str, Any]]", data if isinstance(data, list) else [data.get("entry", data)])
    return [row.get("row", row)["id"] for row in rows]


def _bodies(output: bytes) -> list[str]:
    return [json.loads(row["body"])["id"] for row in json.loads(output)]


def searches(bench: Bench, history: History) -> None:
    """Search a rare, an absent and a common word in a store and in the log in place, beside the tools that scan."""
    store, log = "" if history.is_huge else str(stored(bench, history)), str(bench.log_of(history))
    indexed(bench, history)
    for kind, word in (("rare", RARE), ("absent", ABSENT), ("common", COMMON)):
        for name, place in (("store", store), ("log in place", log)):
            if not place:
                continue
            first = name == "store"
            rivals = Rivals(bench.ours("search", word, "--store", place, "--json", answer=ids))
            rivals.with_python(bench)
            _scanners(bench, history, store, word, rivals, judged=kind != "common", first=first)
            bench.compare(SEARCH, history, f"{kind} word, {name}", rivals)


def _scanners(bench: Bench, history: History, store: str, word: str, rivals: Rivals, *, judged: bool, first: bool) -> None:
    log = str(history.path)
    few = [] if judged else ["-m", str(_HITS)]
    large = "search.rg.large" if history.is_huge else "search.rg"
    rivals.add(bench, "rg", RG, partial(bench.peer, "rg", "-F", *few, "--", word, log, answer=_lines, codes=(0, 1)),
               large if judged else "")  # fmt: skip
    if not first:  # the scanners take the same, whatever of ours they stand beside
        return
    choose = f'select(tostring|contains("{word}"))|.id'
    words = ["-r", choose, log] if judged else ["-rn", f"limit({_HITS};inputs|{choose})", log]
    rivals.add(bench, "jq", JQ, partial(bench.peer, "jq", *words, answer=_names), "search.jq" if judged else "")
    if judged and not bench.quick:
        rivals.add(bench, "lnav", LNAV, partial(bench.peer, "lnav", "-n", "-c", f":filter-in {word}", log, answer=_lines),
                   "search.lnav")  # fmt: skip
    sql = f"SELECT id FROM record WHERE instr(body, '{word}') ORDER BY seq LIMIT {_HITS}"
    rivals.add(bench, "sqlite3", SQLITE, partial(bench.peer, "sqlite3", "-readonly", store, sql, answer=_names))
    if bench.peers.has("duckdb"):
        duckdb_file(bench, history)
    rivals.add(bench, "duckdb", DUCKDB, partial(_duckdb, bench, history, word))


def _duckdb(bench: Bench, history: History, word: str) -> Program:
    return bench.script(_SCAN, str(duckdb_file(bench, history)), word, str(_HITS), answer=_sorted_names)


def _names(output: bytes) -> list[str]:
    return output.decode("utf-8").split()


def _sorted_names(output: bytes) -> list[str]:
    """Return ids in the order of the log, for a table that is read by several threads has none."""
    return sorted(_names(output))


def _lines(output: bytes) -> list[str]:
    return [json.loads(line)["id"] for line in output.splitlines() if line.strip()]


def pages(bench: Bench, history: History) -> None:
    """Page at nine tenths of the history, against a database that counts rows and tools that count lines."""
    store, entries, records = str(stored(bench, history)), history.facts.entries, history.facts.records
    far = entries * 9 // 10
    rivals = Rivals(bench.ours("list", "--offset", str(far), "--store", store, "--json", answer=ids))
    sql = _ENTRY + f"ORDER BY entry.idx LIMIT 20 OFFSET {far}"
    rivals.with_python(bench)
    rivals.add(bench, "sqlite3", "sqlite3 OFFSET", partial(_rows, bench, store, sql), "page.sqlite")
    first = bench.ours("list", "--store", store, "--json")
    rivals.programs["page 0"], rivals.goals["page 0"] = first, ""
    bench.compare(PAGE, history, "20 entries, CLI, store", rivals)
    far = records * 9 // 10
    for name, place in (("store", store), ("log in place", str(bench.log_of(history)))):
        words = ["list", "--kind", "all", "--offset", str(far), "--store", place, "--json"]
        rivals = Rivals(bench.ours(*words, answer=ids))
        pipe = f"tail -n +{far + 2} '{history.path}' | head -n 20"  # lines count from 1, and the first is the session's own
        rivals.programs["tail | head"] = Program(["sh", "-c", pipe], _lines)
        rivals.goals["tail | head"] = "page.tail"
        bench.compare(PAGE, history, f"20 of any kind, CLI, {name}", rivals)


def _rows(bench: Bench, store: str, sql: str) -> Program:
    return bench.peer("sqlite3", "-readonly", store, sql, answer=_lines)


def detections(bench: Bench, history: History) -> None:
    """Replay everything through the detectors, against a parser that only reads ids."""
    if bench.quick and history.size > SHORT:
        return
    for name, place in (("store", str(stored(bench, history))), ("log in place", str(bench.log_of(history)))):
        # Without a time of its own each round after the first would be answered with the verdicts that are kept.
        words = ["detect", "--store", place, "--all-sessions", "--json", "--exit-zero", "--now", "now"]
        rivals = Rivals(bench.ours(*words, answer=partial(_loops, history)), rounds=bench.few)
        jq = partial(bench.peer, "jq", "-c", ".id", str(history.path), answer=partial(_read, history))
        rivals.add(bench, "jq", "jq -c .id", jq, "detect")
        bench.compare(DETECT, history, f"all detectors, {name}", rivals)


def _loops(history: History, output: bytes) -> object:
    """Return that everything planted was found, so that it can be compared with that everything was read."""
    found = output.count(b'"kind":"repetition"')
    return "all" if found >= history.facts.loops else f"{found} of {history.facts.loops} loops"


def _read(history: History, output: bytes) -> object:
    count = output.count(b"\n")
    return "all" if count == history.facts.records else f"{count} of {history.facts.records} records"


def grown(bench: Bench, histories: Sequence[History]) -> dict[str, list[Program]]:
    """Return the commands whose growth is told: by name, one for each history."""
    made: dict[str, list[Program]] = {}
    for history in histories:
        store = str(stored(bench, history))
        indexed(bench, history)
        far = str(history.facts.entries * 9 // 10)
        commands = {
            "list --json": ["list", "--limit", "20"],
            "show --json": ["show", f"@{history.facts.entries * 2 // 3}"],
            "trace --json": ["trace", RARE_ACTION, "--limit", "3"],
            "search rare --json": ["search", RARE],
            "search absent --json": ["search", ABSENT],
            "search common --json": ["search", COMMON, "--max", "20"],
            "page at 0.9 N --json": ["list", "--offset", far],
            "page of any kind at 0.9 N": ["list", "--kind", "all", "--offset", str(history.facts.records * 9 // 10)],
            "messages --json": ["messages", "--limit", "20"],
            "note list --json": ["note", "list"],
            "snapshot list --json": ["snapshot", "list"],
        }
        for name, words in commands.items():
            made.setdefault(name, []).append(bench.ours(*words, "--store", store, "--json"))
        for name in ("search rare --json", "page at 0.9 N --json"):
            log = [*commands[name], "--store", str(bench.log_of(history)), "--json"]
            made.setdefault(f"{name}, log", []).append(bench.ours(*log))
    made[PYTHON] = [bench.bare_python() for _ in histories]
    return made
