"""Damaged documents: every whole element is kept, what is not is told, and nothing is made up."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.importers.log_files import ELEMENTS, read_values
from tests.growth import grows_linearly

ITEMS = [{"role": "user", "content": f"words {n}", "parts": [{"type": "text", "n": n}]} for n in range(6)]


def read(path: Path, data: bytes) -> tuple[dict[str, Any], list[tuple[int, int, str]]]:
    """Return the document in these bytes, and what was told of damage."""
    path.write_bytes(data)
    told: list[tuple[int, int, str]] = []
    lines = list(read_values(path, ("messages",), lambda at, length, why: told.append((at, length, why))))
    return (lines[0].value if lines else {}), told


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(1, 600), indent=st.sampled_from([None, 1]), bare=st.booleans())
def test_a_cut_document_keeps_its_whole_elements(tmp_path: Path, cut: int, indent: int | None, bare: bool) -> None:
    """Wherever it breaks off, exactly the elements that end before are read, and the break is told once."""
    text = json.dumps(ITEMS if bare else {"id": "s", "messages": ITEMS, "end": 1}, indent=indent)
    cut = min(cut, len(text) - 1)
    document, told = read(tmp_path / "a.json", text[:cut].encode())
    found = document.get(ELEMENTS if bare else "messages", [])
    whole = [json.dumps(item, indent=indent) for item in found]
    assert found == ITEMS[: len(found)]
    assert len(found) == len(ITEMS) or json.dumps(ITEMS[len(found)])[-30:] not in json.dumps(text[:cut])
    assert len(told) == 1 or cut <= 2, whole


def test_damage_in_the_middle_costs_only_its_element(tmp_path: Path) -> None:
    """What follows a torn element is read again, and so is what follows the list."""
    text = json.dumps({"messages": ITEMS, "end": 1})
    at = text.index("words 2") + 3
    document, told = read(tmp_path / "a.json", f'{text[:at]}"{text[at:]}'.encode())
    assert [item["content"] for item in document["messages"]] == [f"words {n}" for n in (0, 1, 3, 4, 5)]
    assert document["end"] == 1
    assert len(told) == 1
    assert told[0][0] == text.index('{"role": "user", "content": "words 2"')


@pytest.mark.parametrize("rest", [b"\n{", b" null", b"\xff\xfe"])
def test_what_follows_a_document_is_told(tmp_path: Path, rest: bytes) -> None:
    """Bytes behind the end belong to nothing, and cost nothing."""
    document, told = read(tmp_path / "a.json", json.dumps({"messages": ITEMS}, indent=1).encode() + rest)
    assert document["messages"] == ITEMS
    assert told


@pytest.mark.parametrize(("name", "packer"), [("gzip", gzip.compress), ("xz", lzma.compress)])
def test_a_packed_log_that_breaks_off_is_told(name: str, packer: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """What was unpacked before is read."""
    lines = "".join(json.dumps(item | {"n": n}) + "\n" for n, item in enumerate(ITEMS * 300))
    path = tmp_path / "a.jsonl"
    packed = packer(lines.encode())
    path.write_bytes(packed[: len(packed) // 2])
    told: list[str] = []
    found = list(read_values(path, (), lambda _at, _length, why: told.append(why)))
    assert 100 < len(found) < 1800
    assert any(name in why for why in told)


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_a_first_line_of_megabytes_does_not_cost_those_behind_it(end: str, tmp_path: Path) -> None:
    """One line of an OTLP export has no limit; a document on one line ends with it."""
    path = tmp_path / "a.jsonl"
    first: dict[str, Any] = {"n": 1, "messages": ["x" * (3 << 20)]}
    second: dict[str, Any] = {"n": 2, "messages": []}
    told: list[str] = []

    def numbers() -> list[int]:
        return [line.value["n"] for line in read_values(path, ("messages",), lambda _at, _length, why: told.append(why))]

    path.write_text(json.dumps(first) + "\n" + json.dumps(second) + end)
    assert numbers() == [1, 2]

    path.write_text(json.dumps(first) + end)
    assert numbers() == [1]
    assert not told


@pytest.mark.cases(1)
@pytest.mark.parametrize("torn", ["x,", "{x},", '{"a" 1},', '{"a":"', '["a":1],', '{"b":1,{"c":x'])
def test_tears_cost_linear_time(tmp_path: Path, torn: str) -> None:
    """A hostile document may be torn behind every element."""

    def work(size: int) -> None:
        unit = '{"a":1},' + torn
        read(tmp_path / "a.json", ("[" + unit * (size // len(unit))).encode())

    assert grows_linearly(work, 20_000)


@pytest.mark.parametrize("length", [10, 470, 483, 512, 8_150, 8_192, 140_000])
@pytest.mark.parametrize("fill", ["x", "\\u00e9", "\u00e9", "\\n", "\\ud83d\\ude00"])
def test_elements_of_every_length_are_kept_beside_a_tear(tmp_path: Path, length: int, fill: str) -> None:
    """A damaged document is read in pieces; where one ends within a value, the value is whole all the same."""
    element = f'{{"role": "user", "content": "{fill * (length // len(fill))}"}}'
    text = f"[{element}, {element}, x {element}, 12345, {element}]"
    document, told = read(tmp_path / "a.json", text.encode())
    assert document[ELEMENTS] == [json.loads(element)] * 3 + [12345, json.loads(element)]
    at = text.index("x {")
    assert told == [(len(text[:at].encode()), 2, "torn or unreadable JSON")]
