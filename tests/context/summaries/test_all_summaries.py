"""What every summary holds to, whatever made it: shorter, the same each time, and never an exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.context.summaries import SUMMARISERS, Summary, summarise
from ctxmgr.context.summaries.python import PythonSummariser
from ctxmgr.context.summaries.structured_data import JsonSummariser, YamlSummariser
from ctxmgr.text.tokens import ESTIMATE, KINDS, Counter

ROOT = Path(__file__).parents[3]

HOSTILE = {
    "empty": "",
    "blanks": " \n\t\n" * 100,
    "NUL": "key: a\0b\n# Title\0\ndef f(): pass\n" * 20,
    "lone surrogates": "# a \ud800\nkey: \udfff\n" * 50,
    "tabs": "a:\n\tb:\n\t\t- c\n" * 50,
    "an open brace": "{" * 20_000,
    "an open list": "[" * 100_000,
    "deep objects": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "deep quotes": ">" * 20_000 + " a\n",
    "deep bullets": "\n".join("  " * depth + "- x" for depth in range(300)),
    "deep YAML": "\n".join(" " * depth + "k:" for depth in range(600)),
    "deep flow": "a: " + "[" * 400 + "]" * 400,
    "deep sum": "x = " + "+".join(["1"] * 20_000),
    "deep signs": "x = " + "-" * 20_000 + "1",
    "a bomb": "a: &a [x, x]\n"
    + "".join(f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)),
    "many aliases": "a: &a {x: 1}\nb: [" + ", ".join(["*a"] * 5_000) + "]\n",
    "what holds itself": "&a [*a, {b: *a}, " + "c, " * 80 + "d]\n",
    "a merge of itself": "a: &a\n  <<: *a\n  b: 1\n" * 20,
    "tags": "a: !!python/object/apply:os.system ['false']\n" * 20,
    "many documents": "---\na: 1\n" * 200,
    "merge keys": "? [a, b]\n: c\n? {d: e}\n: f\n" * 20,
    "huge numbers": '{"a": ' + "9" * 20_000 + ', "b": 1e999999, "c": NaN}',
    "repeated keys": "{" + ", ".join('"a": 1' for _ in range(200)) + "}",
    "a long key": '{"' + "k" * 20_000 + '": 1, "b": 2}',
    "one line": "word " * 20_000,
    "one word": "x" * 50_000,
    "only headings": "# a\n" * 500,
    "setext": "a\n=\nb\n-\n" * 100,
    "fences": "```\n" * 501,
    "links": "[" * 3_000 + "a](b" * 3_000,
    "a header of ours": "# summary by structure; in full: 9 tokens\n" * 40,
    "carriage returns": "a: 1\rb: 2\r\n# c\r" * 50,
    "no Python": "def f(:\n  class\n" * 50,
    "bytes order": "\ufeff" + json.dumps({"a": list(range(200))}),
    "separators": "a: 1\u2028# b\u2029def f(): pass\x85" * 50,
    "braces of C": "int f(int a) {" * 2_000,
    "lots of attributes": "#[a]\n" * 2_000 + "fn f() {}\n",
}

YAML_TEXT = "services:\n" + "".join(
    f"  - name: service_{number}\n    image: registry/app:{number}\n    ports: [80{number:02}, 90{number:02}]\n"
    f"    note: it does the work of part {number} and says so\n"
    for number in range(80)
)
MARKDOWN_TEXT = "# Plan\n\n" + "".join(
    f"## Part {number}\n\n"
    + f"The part {number} begins here. It goes on with more of it. " * 12
    + "\n\nA second paragraph. " * 3
    + "\n\n"
    for number in range(20)
)


class Words:
    """A counter unlike the estimate: every word is a token, and so is every line end."""

    name = "words"
    band = 1.0

    def count(self, text: str, kind: str) -> int:
        """Return the number of words and line ends."""
        return len(text.split()) + text.count("\n")


def _checked(name: str, text: str, kind: str, counter: Counter) -> Summary:
    """Return the summary after testing what holds for all of them."""
    made = summarise(name, text, kind, counter)
    again = summarise(name, text, kind, counter)

    assert made == again
    assert made.tokens <= made.original_tokens
    assert len(made.text) <= len(text)
    assert made.lossless == (made.text == text) == (made.strategy == "none")
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_summarised_like_any_other(name: str, kind: str) -> None:
    """Whatever a text holds and whatever it claims to be, its summary is no longer, the same each time, and no exception."""
    _checked("", HOSTILE[name], kind, ESTIMATE)


@settings(max_examples=300)
@given(
    text=st.lists(
        st.sampled_from(
            [
                "# a",
                "b: c",
                "  - d: e",
                "def f(x): ...",
                "class A:",
                "    y = 1",
                '{"k": [1]}',
                "text. More.",
                "",
                "```",
                "\t",
                "fn f() {",
                "}",
            ]
        )
        | st.text(max_size=20),
        max_size=60,
    ).map("\n".join),
    kind=st.sampled_from(KINDS),
    counter=st.sampled_from([ESTIMATE, Words()]),
)
def test_any_text_is_summarised(text: str, kind: str, counter: Counter) -> None:
    """Random mixtures of all notations, by two counters, give summaries that are no longer; those again no longer ones."""
    made = _checked("", text, kind, counter)
    again = _checked("", made.text, kind, counter)

    assert again.tokens <= made.tokens


@pytest.mark.long
@pytest.mark.parametrize("kind", ["yaml", "markdown", "python"])
def test_ten_megabytes_are_summarised(kind: str) -> None:
    """What no parser is given any more still gets a short summary."""
    line = {"yaml": "key_{}: value\n", "markdown": "## Part {}\n\nText.\n"}.get(kind, "def f_{}(): pass\n")
    text = "".join(line.format(number) for number in range(10_000_000 // len(line)))

    made = summarise("", text, kind, ESTIMATE)

    assert made.tokens < made.original_tokens
    assert not made.lossless


@pytest.mark.parametrize("text", ["a: 1\n", "# Title\n", "def f(): pass\n", '{"a": 1}', "Short."])
def test_little_text_stays_as_it_is(text: str) -> None:
    """A text of a few tokens is its own summary."""
    made = summarise("", text, "", ESTIMATE)

    assert (made.text, made.lossless) == (text, True)
    assert made.tokens == made.original_tokens > 0


def test_a_summary_says_that_it_is_one() -> None:
    """The first line names what the text is and how large the whole was, in the notation of its kind."""
    prose = "This is a sentence. And one more of them.\n\n" * 30
    firsts = {
        kind: summarise("", text, kind, ESTIMATE).text.partition("\n")[0]
        for kind, text in {
            "markdown": "# A\n\n" + prose,
            "yaml": "a: |\n" + "  some words of text here\n" * 40,
            "python": 'def f(x):\n    """Doc."""\n' + "    x += 1\n" * 60,
            "text": prose,
        }.items()
    }

    assert firsts == {
        "markdown": f"<!-- summary by structure; in full: {ESTIMATE.count('# A' + chr(10) * 2 + prose, 'text'):,} tokens -->",
        "yaml": "# summary by structure; in full: 299 tokens",
        "python": "# summary by structure; in full: 196 tokens",
        "text": f"[summary by structure; in full: {ESTIMATE.count(prose, 'text'):,} tokens]",
    }


def test_every_kind_has_a_summariser_of_last_resort() -> None:
    """For each kind one of the summarisers takes texts far larger than any parser is given."""
    assert {kind for made in SUMMARISERS if made.limit > 10_000_000 for kind in made.kinds} == set(KINDS)
    assert len({made.strategy for made in SUMMARISERS}) == len(SUMMARISERS)


@pytest.mark.requirement("003-P17")
@pytest.mark.parametrize(
    ("name", "text", "target"),
    [
        ("a.yaml", YAML_TEXT, 20),
        ("a.json", json.dumps({"rows": [{"id": number, "text": f"row {number}"} for number in range(300)]}, indent=1), 20),
        ("a.md", MARKDOWN_TEXT, 25),
        ("a.py", (ROOT / "ctxmgr/context/budget.py").read_text(), 30),
        ("b.py", (ROOT / "ctxmgr/history/live/blackboard.py").read_text(), 30),
    ],
)  # fmt: skip
def test_a_summary_uses_the_room_it_is_given(name: str, text: str, target: int) -> None:
    """Where there is more to say a summary fills two thirds of its target at least, and never goes over it."""
    made = summarise(name, text, "", ESTIMATE)

    assert made.original_tokens * target // 100 * 2 // 3 <= made.tokens <= made.original_tokens * target // 100


@pytest.mark.parametrize(
    ("text", "reader"),
    [("{", JsonSummariser()), ("a: [", YamlSummariser()), ("a:\n\t- b", YamlSummariser()), ("def (", PythonSummariser())],
)
def test_a_broken_text_falls_to_the_lines(text: str, reader: JsonSummariser | YamlSummariser | PythonSummariser) -> None:
    """What its parser refuses is summarised line by line."""
    kind = sorted(reader.kinds)[-1]
    whole = (text + "\n" + "key: some value and more of it\n" * 60).replace("def (\n", "def (\n" * 20)

    assert summarise("", whole, kind, ESTIMATE).strategy == "lines/3"


_SECTION = "## Part {0}\n\nPart {0} says how the queue number {0} is served. More words follow that nobody needs at once.\n\n"
_BODY = "".join(f"    value = value * {{0}} + {number}\n" for number in range(4))
_FUNCTION = f'def part_{{0}}(value: int) -> int:\n    """Serve the queue number {{0}}."""\n{_BODY}    return value\n\n\n'
_GO = f"// Part{{0}} serves the queue number {{0}}.\nfunc Part{{0}}(value int) int {{{{\n{_BODY}    return value\n}}}}\n\n"


@pytest.mark.requirement("003-P17")
@pytest.mark.parametrize(
    ("name", "piece", "kept", "told"),
    [
        ("a.md", _SECTION, "## Part {0}", "Part {0} says how the queue number {0} is served."),
        ("a.py", _FUNCTION, "def part_{0}(value: int) -> int:", "Serve the queue number {0}."),
        ("a.go", _GO, "func Part{0}(value int) int", "Part{0} serves the queue number {0}."),
    ],
)
@pytest.mark.parametrize("count", [12, 60, 100, 400])
def test_a_summary_is_filled_up_to_its_target(name: str, piece: str, kept: str, told: str, count: int) -> None:
    """Not all first sentences and doc comments fit, nor is none given: as many as fit, and every heading and signature."""
    text = "".join(piece.format(number) for number in range(count))
    made = summarise(name, text, "", ESTIMATE)
    share = made.tokens * 100 // made.original_tokens
    target = 25 if name == "a.md" else 30

    assert target - 5 <= share <= target
    assert all(kept.format(number).rstrip(":") in made.text for number in range(count))
    assert told.format(0) in made.text


def test_a_small_text_is_summarised_by_what_its_parts_say() -> None:
    """The note alone takes the target of such a text, so that it may have as many tokens as a text that is given whole."""
    text = (
        "# Jobs\n\nJobs wait in a queue. It is long.\n\n## Start\n\n```sh\nmake jobs\n```\n\n## Stop\n\nA job ends. "
        + "Or not. " * 20
    )
    made = summarise("small.md", text, "", ESTIMATE)

    assert made.tokens <= 40
    assert "Jobs wait in a queue." in made.text
    assert "## Stop" in made.text
