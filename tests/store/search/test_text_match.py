"""The function ``holds`` answers as a plain search does, however the JSON of a record is spelled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxmgr.history.query.requests import list_notes
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.store.row_mapper import entry_rows, event_row
from ctxmgr.store.search import text_match
from ctxmgr.store.search.text_match import SearchTerm, holds_condition, like, rare_parts, register_holds
from ctxmgr.store.text_normalisation import find, fold, fold_text, searchable_texts
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListNotesRequest
from tests.builders import at
from tests.store.search.test_find import AWKWARD, WORDS

_LETTERS = "aKſßSsİıi̇ﬁŉǰẖAé漢😀\ud83d\ude00\ud800\U0010ffff\uffff\ufffd /\\\"'\b\f\n\r\t\0\x1b\x7f<>&:,{}[]019.-+eEuUn"
TEXTS = st.text(st.sampled_from(_LETTERS), max_size=6)
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e16, -0.0, 1.0, 100.0, 1e-7, 0.1, 5e-324, 1.5e300, 12345678901234567890.0, 0, -1]),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
FIELDS = ("action", "agent", "input", "output", "error", "data", "type", "content", "tags", "author", "meta", "task")


def _as_written(record: Record) -> str:
    return codec.encode(record).decode("ascii")


def _escaped(record: Record) -> str:
    """Spell every character of every text as its number, and every slash that is left with a backslash."""
    return "".join(
        f"\\u{ord(letter):04X}" if letter.isalnum() and not body else letter for letter, body in _marked(_as_written(record))
    ).replace("/", "\\/")


def _marked(text: str) -> list[tuple[str, bool]]:
    """Return each character, and whether it must stay: it is outside of texts, or part of an escape."""
    marked: list[tuple[str, bool]] = []
    inside, escape = False, 0
    for letter in text:
        keeps = not inside or escape > 0 or letter in '"\\'
        if escape:
            escape = 4 if escape == 1 and letter == "u" else escape - 1 if escape != 1 else 0
        elif inside and letter == "\\":
            escape = 1
        elif letter == '"':
            inside = not inside
        marked.append((letter, keeps))
    return marked


def _loose(record: Record) -> str:
    """Spell numbers as no Python does, with blanks between."""
    odd = {"1e+16": "1E16", "100.0": "1E+2", "1.0": "10e-1", "0.1": "0.10000000000000001"}
    text = json.dumps(record, indent=1).replace("\\u007f", "\x7f")
    return re.sub(r"(?<= )(1e\+16|100\.0|1\.0|0\.1)(?=[,\n])", lambda number: odd[number[0]], text)


SPELLINGS: tuple[Callable[[Record], str], ...] = (_as_written, _escaped, _loose)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Record, str]:
    """Draw a record and a text that is in it, nearly in it, or anything."""
    kind = draw(st.sampled_from(["entry", "event", "result", "note", "snapshot"]))
    record: Record = {"v": 1, "kind": kind, **draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5))}
    texts = [text for _, text in searchable_texts(record) if text]
    text = draw(st.sampled_from(texts)) if texts and draw(st.integers(0, 3)) else draw(TEXTS)
    first = draw(st.integers(0, max(0, len(text) - 1)))
    part = text[first : first + draw(st.integers(1, 8))]
    return record, draw(st.sampled_from([part, part.upper(), part + "a"])) or "a"


def nested(levels: int) -> Any:
    """Return a text so many levels deep in lists and objects."""
    value: Any = {"deep": "needle"}
    for number in range(levels):
        value = [value] if number % 2 else {"in": value}
    return value


@settings(max_examples=400)
@given(asked(), st.sampled_from(SPELLINGS))
@example(({"kind": "event", "data": {"x": 1e16}}, "1e+16"), _loose)
@example(({"kind": "event", "data": [100.0]}, "100.0"), _loose)
@example(({"kind": "event", "data": [0.1]}, "0.1"), _loose)
@example(({"kind": "event", "data": [1.0, "a\x7fb"]}, "a\x7fb"), _loose)
@example(({"kind": "event", "data": [-0.0]}, "-0.0"), _as_written)
@example(({"kind": "event", "data": "\u212a\u017f\u0130"}, "ks"), _as_written)
@example(({"kind": "event", "data": "stra\xdfe/\ufb01"}, "asse/fi"), _escaped)
@example(({"kind": "event", "data": {"a\\nb": "\\u0041"}}, "\\u004"), _as_written)
@example(({"kind": "event", "data": "n"}, "\n"), _as_written)
@example(({"kind": "event", "data": "50%_!\x7f"}, "%_!\x7f"), _as_written)
@example(({"kind": "event", "data": "50 percent"}, "50%e"), _as_written)
@example(({"kind": "event", "data": "xy" * 30_000}, "YX" * 29_000), _as_written)
@example(({"kind": "note", "content": "kind", "meta": "other"}, "meta"), _as_written)
@example(({"kind": "entry", "input": nested(62)}, "needle"), _as_written)
@example(({"kind": "entry", "input": nested(63)}, "needle"), _as_written)
@example(({"kind": "entry", "input": nested(64)}, "needle"), _as_written)
def test_holds_says_what_a_plain_search_says(drawn: tuple[Record, str], spelling: Callable[[Record], str]) -> None:
    """Whatever a record holds and however its JSON is spelled, a text is in it when it is in one of its folded texts."""
    record, text = drawn
    body, needle = spelling(record), fold(text)
    store = open_store(":memory:", create=True)
    register_holds(store.engine)
    held = store.engine.query("SELECT holds(:body, :needle)", {"body": body, "needle": needle.encode()})
    condition, values = holds_condition(needle)
    found = store.engine.query(f"SELECT 1 WHERE {condition.format(':body')}", {"body": body, **values})
    store.close()

    stored: Record = json.loads(body)
    expected = any(needle in fold(part) for _, part in searchable_texts(stored))
    assert bool(held[0][0]) == bool(found) == expected
    assert expected == (needle in (fold_text(stored) or ""))


def test_a_body_that_was_altered_counts_by_what_stands_there() -> None:
    """What is no JSON any more is found by its bytes, and the function says no more about it."""
    store = open_store(":memory:", create=True)
    register_holds(store.engine)
    bodies = ['{"kind":"entry","action":"Needle', "[1, 'needle']", '["needle"]', '{"kind":"needle"}', "\xe9 needle"]
    held = [store.engine.query("SELECT holds(:body, CAST('needle' AS BLOB))", {"body": body})[0][0] for body in bodies]
    nothing = store.engine.query("SELECT holds(NULL, x'00')")[0][0]
    store.close()

    assert (held, nothing) == ([1, 1, 1, 0, 1], 0)


def test_notes_are_found_by_their_texts() -> None:
    """The text of a note is looked for in what it says, in any case, and not in the names of its fields."""
    store = open_store(":memory:", create=True)
    store.append([build("note", "s", at(number), id=f"n{number}", entries=[], content=text) for number, text in enumerate(
        ("Straße 7", "the STRASSE", "content", "other")
    )])  # fmt: skip
    found = [
        [note.id for note in list_notes(store, ListNotesRequest(query=query)).notes]
        for query in ("strasse", "CONTENT", "author")
    ]
    store.close()

    assert found == [["n0", "n1"], ["n2"], []]


@pytest.mark.parametrize("error", [KeyError("odd"), KeyboardInterrupt()])
def test_what_a_function_raises_is_raised_as_it_is(error: BaseException) -> None:
    """A statement raises what the function raised, and the engine goes on working."""

    def fail(value: object) -> object:
        if value:
            raise error
        return value

    store = open_store(":memory:", create=True)
    store.engine.function("fails", 1, fail)
    store.engine.function("fails", 1, str)
    with pytest.raises(type(error)) as caught:
        store.engine.query("SELECT fails(1)")
    with pytest.raises(type(error)):
        list(store.engine.stream("SELECT fails(value) FROM json_each('[0, 0, 1]')"))

    assert caught.value is error
    assert store.engine.query("SELECT fails(0)") == [(0,)]
    store.close()


@pytest.mark.slow
@settings(max_examples=300)
@given(asked(), st.one_of(st.none(), VALUES), st.sampled_from(SPELLINGS), st.integers(0, 3))
@example(({"kind": "entry", "data": "needle"}, "needle"), None, _as_written, 1)
@example(({"kind": "entry", "output": "x"}, "needle"), {"deep": ["needle"]}, _as_written, 0)
@example(({"kind": "entry", "output": "x"}, "needle"), {"deep": ["needle"]}, _as_written, 2)
@example(({"kind": "entry", "output": "needle"}, "needle"), "x", _as_written, 2)
@example(({"kind": "entry", "action": {"a": "needle"}}, "needle"), "x", _as_written, 2)
def test_a_row_matches_where_its_bodies_hold_the_text(
    drawn: tuple[Record, str], output: Any, spelling: Callable[[Record], str], altered: int
) -> None:
    """A row is a match exactly when one of its bodies holds the text, and is told of as the row that is shown would be."""
    record, text = drawn
    kind = "event" if record["kind"] == "event" else "entry"
    own = kind if altered != 1 else "event" if kind == "entry" else "entry"
    record = {"id": "i", "session": "s", **record, "kind": own}
    answer = None if output is None or kind == "event" else {"kind": "result" if altered else "snapshot", "output": output}
    bodies = [spelling(record), None if answer is None else spelling(answer)]
    row = (7, 1, 0, "ok", *bodies) if kind == "entry" else (7, 1, None, bodies[0])
    needle = fold(text)
    match = SearchTerm(needle).match(kind, row)

    plain = [fold_text(json.loads(body)) or "" for body in bodies if body is not None]
    assert (match is not None) == any(needle in one for one in plain)
    if match is None:
        return
    store = open_store(":memory:", create=True)
    told = [(entry_rows(store.engine, [one])[0] if kind == "entry" else event_row(one)) for one in (row, match[0])]
    store.close()
    assert told[0] == told[1]
    assert match[1] in (None, find(told[0], needle))
    usual = all(isinstance(record.get(name), str | None) for name in ("action", "agent", "task", "type"))
    assert match[1] is not None or not usual or find(told[0], needle) is None or answer is not None or own != kind


_WORDS = ("lorem", "dolor", "00499997", "a_b", "50%", "übung", "!", "make target-13", "\n", "done")

_TEXTS = st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join)


@given(_TEXTS, _TEXTS, _TEXTS, st.lists(_TEXTS, max_size=40))
def test_every_text_that_holds_another_has_its_rare_parts(needle: str, before: str, behind: str, sample: list[str]) -> None:
    """Whatever the sample says, a pattern leaves no text out that contains the one that is looked for."""
    letters = re.findall(r"!.|.", rare_parts(needle, sample), re.DOTALL)
    pattern = "".join(".*" if letter == "%" else re.escape(letter[-1]) for letter in letters)
    assert re.fullmatch(pattern, f"{before}{needle}{behind}", re.DOTALL)


@pytest.mark.parametrize(
    ("needle", "pattern"),
    [
        ("00499997 lorem", "%00499997%"),
        ("lorem 00499997 ipsum", "%00499997%"),
        ("lorem ipsum", "%lorem ipsum%"),  # nothing of it is rare
        ("0042 lorem 0043", "%0042%0043%"),
        ("--", "%--%"),
    ],
)
def test_what_every_text_holds_is_not_asked_for(needle: str, pattern: str) -> None:
    """Of a text, letters that all texts of the sample hold are left out; where all of it is common, nothing is."""
    assert rare_parts(needle, ["lorem ipsum dolor"] * 64) == pattern
    assert rare_parts(needle, ["lorem ipsum dolor"] * 3) == like(needle)


@given(st.lists(st.one_of(AWKWARD, WORDS), max_size=8))
def test_words_are_what_the_tokenizer_of_the_index_makes_of_a_text(texts: list[str]) -> None:
    """The words that the vocabulary holds are those under which the index holds the text."""
    store = open_store(":memory:", create=True)
    text = " ".join(map(fold, texts))
    run = store.engine.execute
    run(f"CREATE VIRTUAL TABLE w USING fts5(words, content='', detail=none, columnsize=0, tokenize='{text_match.TOKENIZER}')")
    run("CREATE VIRTUAL TABLE v USING fts5vocab(w, 'row')")
    run("INSERT INTO w (rowid, words) VALUES (1, :text)", {"text": text})

    assert {str(row[0]) for row in store.engine.query("SELECT term FROM v")} == {
        word.decode() for word in text_match.split_words([text])
    }
    store.close()


@given(st.text("ab1", min_size=1, max_size=400), st.data())
def test_every_short_part_of_a_long_word_stands_whole_in_one_of_its_windows(word: str, data: st.DataObject) -> None:
    """What is asked of the vocabulary is never cut in two."""
    first = data.draw(st.integers(0, len(word) - 1))
    part = word[first : first + text_match.PROBE]
    windows = text_match.word_windows(word)

    assert any(part in text for text, _ in windows)
    assert all(len(text) <= text_match.MAX_WORD and head in ("", word[: text_match.MAX_WORD]) for text, head in windows)


@given(st.lists(st.text("=>{}()!aZ_0 \n\x7f\0é'\"", max_size=30), max_size=3))
def test_the_marks_of_a_text_are_its_runs_of_marks(texts: list[str]) -> None:
    """They are what a pattern finds."""
    text = " ".join(map(fold, texts))
    assert text_match.find_marks([text]) == {run.encode() for run in re.findall(r"[!-/:-@\[-^`{-~]{3,}", text)}
