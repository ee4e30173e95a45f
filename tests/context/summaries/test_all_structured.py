"""Summaries keep what a document is held together by: every heading, every signature, the keys with their shape."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from ctxmgr.context.summaries import summarise
from ctxmgr.context.summaries.grammar import GrammarSummariser
from ctxmgr.context.summaries.prose import LineSummariser, MarkdownSummariser
from ctxmgr.context.summaries.python import PythonSummariser, first_lines
from ctxmgr.context.summaries.structured_data import JsonSummariser, YamlSummariser
from ctxmgr.text.tokens import ESTIMATE

ROOT = Path(__file__).parents[3]

LINES = [
    "# One",
    "## Two ##",
    "Title\n===",
    "Sub\n---",
    "> # quoted",
    "- # in a list",
    "#",
    "# #",
    "### `code` *it*",
    "- item",
    "1. first",
    "A sentence. Another one.",
    "```\n# no heading\n```",
    "    # indented",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "",
    "<b>\n# in html",
    "text\n  # still text",
    "\\# no heading",
    "---",
    "***",
    "[a]: b",
    "~~~\n```",
]


def headings(text: str) -> list[tuple[str, str]]:
    """Return the level and the words of every heading, as a Markdown parser sees them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [
        (token.tag, " ".join(tokens[number + 1].content.split()))
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


@pytest.mark.long
@settings(max_examples=500)
@given(text=st.lists(st.sampled_from(LINES), max_size=25).map("\n".join))
def test_all_headings_are_kept(text: str) -> None:
    """Whatever surrounds them, each draft has the headings of the document, in their order and on their level."""
    assume(not text.startswith("---"))  # else its beginning is front matter
    for draft in MarkdownSummariser().drafts(text, "markdown"):
        assert headings(draft) == headings(text)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_real_markdown_keeps_its_headings_within_the_target(name: str) -> None:
    """A real document is summarised to a quarter at most and keeps its headings."""
    text = (ROOT / name).read_text(encoding="utf-8")
    made = summarise(name, text, "", ESTIMATE)

    assert headings(made.text.partition("\n")[2]) == headings(text)
    assert made.tokens <= made.original_tokens * 25 // 100


def signatures(body: list[ast.stmt], inside: str = "") -> Iterator[str]:
    """Yield each definition of a module with its arguments, bases and decorators, wherever it stands outside functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators = [ast.unparse(one) for one in node.decorator_list]
            told = ast.unparse(node.bases) if isinstance(node, ast.ClassDef) else ast.unparse(node.args)  # pyright: ignore[reportArgumentType]
            result = "" if isinstance(node, ast.ClassDef) or node.returns is None else ast.unparse(node.returns)
            yield f"{inside}{node.name}({told}) {result} {decorators} {type(node).__name__}"
            if isinstance(node, ast.ClassDef):
                yield from signatures(node.body, f"{inside}{node.name}.")
        else:
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                below: list[ast.stmt] = getattr(node, part, [])
                for one in below:
                    yield from signatures(one.body if isinstance(one, ast.ExceptHandler | ast.match_case) else [one], inside)


MODULES = [
    path for path in sorted((ROOT / "ctxmgr").rglob("*.py")) if "\ndef " in (text := path.read_text()) or "\nclass " in text
]


@pytest.mark.long
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_signatures_are_kept(path: Path) -> None:
    """Each draft of a module of this project is Python, and has all its signatures in their order."""
    text = path.read_text(encoding="utf-8")
    expected = list(signatures(ast.parse(text).body))

    for draft in PythonSummariser().drafts(text, "python"):
        assert list(signatures(ast.parse(draft).body)) == expected


def test_front_matter_is_no_heading() -> None:
    """What stands before the document is kept as data, and never turns into a heading of its summary."""
    text = "---\ntitle: A page\n---\n\n# One\n\n" + "Some words that go on for a while. And on.\n" * 40
    made = summarise("a.md", text, "", ESTIMATE)

    assert headings(made.text) == [("h1", "One")]
    assert "title: A page" in made.text


def test_python_signatures_in_odd_places() -> None:
    """Definitions below conditions, with every sort of argument, and docstrings full of quotes survive as Python."""
    text = (
        "import os, sys\n"
        "if os:\n"
        "    def a(x, /, y: int = 1, *z: str, k=None, **o) -> 'None': pass\n"
        "else:\n"
        "    async def b(): pass\n"
        "try:\n"
        "    @d(1)\n"
        "    class C(dict, metaclass=type):\n"
        "        x: int = 1\n"
        "        def m(self): r'''Say \"\"\"a\\ b\"'''\n"
        "except E:\n"
        "    def f(): 'Ends in a quote\"'\n"
    )
    for draft in PythonSummariser().drafts(text, "python"):
        assert list(signatures(ast.parse(draft).body)) == list(signatures(ast.parse(text).body))


def test_yaml_keeps_keys_comments_and_order() -> None:
    """Within the target the outline is YAML with all field names in their order, the comments, and the size of lists."""
    text = "# about all\nzeta: 1\n" + "".join(
        f"part{number}:  # the part {number}\n  # how it is called\n  name: some longer words to be cut {'x ' * 240}\n"
        f"  list: [1, 2, 3, 4]\n  many:\n    - {{id: 1, text: {'word ' * 30}}}\n    - {{id: 2, extra: {'word ' * 30}}}\n"
        for number in range(3)
    )  # fmt: skip
    made = summarise("a.yaml", text, "", ESTIMATE)
    read = YAML(typ="safe", pure=True).load(made.text)

    assert made.tokens <= made.original_tokens // 5
    assert list(read) == ["zeta", "part0", "part1", "part2"]
    assert list(read["part1"]) == ["name", "list", "many"]
    assert list(read["part1"]["many"][0]) == ["id", "text", "extra"]
    assert "# the part 1" in made.text
    assert "# about all" in made.text
    assert "…3 more" in made.text


def test_json_keeps_its_keys_and_shape() -> None:
    """An outline of JSON has the keys of all items of a list, once, and how many items there are."""
    text = (
        '{"rows": ['
        + ", ".join(f'{{"id": {number}, "k{number % 3}": "some text"}}' for number in range(50))
        + '], "last": null}'
    )
    made = summarise("a.json", text, "", ESTIMATE)

    assert made.text.partition("\n")[2].startswith(
        "rows:\n- id: 0\n  k0: some text\n  k1: some text\n  k2: some text\n- {id: 1, k1: some text}\n"
    )
    assert made.text.endswith(" more\nlast: null\n")
    assert made.tokens <= made.original_tokens // 5


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


@pytest.mark.requirement("003-P17")
def test_a_summary_of_code_tells_of_the_implementation() -> None:
    """Where there is room, the first statements of a function follow its signature, and the whole is Python."""
    body = "".join(f"    step_{number} = call_{number}(value, {number})\n" for number in range(30))
    doc = '    """Do it."""\n'
    opening = f"def work(value):\n{doc}    try:\n        first(value)\n    except ValueError:\n        pass\n"
    text = f"{opening}{body}    return done(value)\n"
    made = summarise("a.py", text, "", ESTIMATE)

    ast.parse(made.text)
    assert "    first(value)\n    # except ValueError\n    pass\n    step_0 = call_0(value, 0)\n" in made.text
    assert made.text.endswith("    ...\n")


@pytest.mark.parametrize("path", MODULES[::7], ids=lambda path: str(path.relative_to(ROOT)))
def test_an_implementation_is_cut_anywhere(path: Path) -> None:
    """However few lines of each function are told, what is told is Python."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for count in (*range(1, 12), 60):
                told = "\n".join(first_lines(node, count, "    "))
                ast.parse(f"async def f():\n{told}\n")


def test_nothing_in_yaml_is_constructed(tmp_path: Path) -> None:
    """Tags that would make an unsafe reader run something do nothing here."""
    made = tmp_path / "made"
    text = f"a: !!python/object/apply:os.mkdir ['{made}']\n" + "b: word\n" * 60

    assert summarise("a.yaml", text, "yaml", ESTIMATE).tokens > 0
    assert not made.exists()


def test_a_bomb_of_aliases_stays_small() -> None:
    """A document that would unfold to a thousand million values is outlined by its names."""
    bomb = "a: &a [lol, lol]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )

    assert all(len(draft) < 2_000 for draft in YamlSummariser().drafts(bomb, "yaml"))


CODE = {
    "go": (
        "package a\n\n// S is it.\ntype S struct {\n\ta int\n}\n\nfunc (s S) F(x int) error {\n\treturn nil\n}\n",
        ["type S struct", "func (s S) F(x int) error"],
    ),
    "rust": (
        "/// Doc.\n"
        "pub struct A<T> {\n"
        "    x: T,\n"
        "}\n"
        "\n"
        "impl<T> A<T> {\n"
        "    pub fn new(x: T) -> Self {\n"
        "        A { x }\n"
        "    }\n"
        "}\n",
        ["pub struct A<T>", "impl<T> A<T>", "pub fn new(x: T) -> Self"],
    ),
    "typescript": (
        "export interface I<T> {\n"
        "  a: string;\n"
        "}\n"
        "export class C extends D {\n"
        "  async m<T>(x: T): Promise<T> {\n"
        "    return x;\n"
        "  }\n"
        "}\n"
        "export const f = (x: number): void => {\n"
        "};\n",
        ["export interface I<T>", "export class C extends D", "async m<T>(x: T): Promise<T>", "const f = (x: number): void =>"],
    ),
    "javascript": (
        "// Says a.\nfunction a(b, c = 1) {\n  return b;\n}\nclass Q extends R {\n  get z() {\n    return 1;\n  }\n}\n",
        ["function a(b, c = 1)", "class Q extends R", "get z()"],
    ),
    "java": (
        "/** Doc. */\npublic class A<T> extends B {\n  @Override\n  public <U> U m(U u) throws E {\n    return u;\n  }\n}\n",
        ["public class A<T> extends B", "public <U> U m(U u) throws E"],
    ),
    "c": (
        "/* Adds. */\nstatic int *g(char *x)\n{\n  return 0;\n}\nint f(int a);\n#define M(x) (x)\n",
        ["static int *g(char *x)", "int f(int a);", "#define M(x)"],
    ),
    "cpp": (
        "namespace n {\nclass A : public B {\n public:\n  int m() const {\n    return 1;\n  }\n};\n}\n",
        ["namespace n", "class A : public B", "int m() const"],
    ),
    "ruby": (
        "module M\n  # Doc.\n  class A < B\n    def m(a, b = 1)\n      1\n    end\n  end\nend\n",
        ["module M", "class A < B", "def m(a, b = 1)"],
    ),
    "shell": (
        "# Does it.\nfoo() {\n  echo\n}\nfunction bar {\n  :\n}\n",
        ["foo()", "function bar"],
    ),
}


@pytest.mark.parametrize("kind", CODE)
def test_signatures_of_other_languages_by_line(kind: str) -> None:
    """Without a grammar the lines that open a definition are kept, in order, without what they do."""
    text, expected = CODE[kind]
    last = list(LineSummariser().drafts(text, kind))[-1]

    assert [one for one in expected if one in last] == expected
    assert "return" not in last


@pytest.mark.parametrize("kind", CODE)
def test_signatures_of_other_languages_by_grammar(kind: str) -> None:
    """With a grammar every draft has the signatures, in order; the first also what is documented above and done below."""
    pytest.importorskip("tree_sitter")
    text, expected = CODE[kind]
    drafts = list(GrammarSummariser().drafts(text, kind))

    for draft in drafts:
        assert [one for one in expected if one in draft] == expected
    assert "return" not in drafts[-1]
    assert ("return" in text) == ("return" in drafts[0])
    assert any(mark in text for mark in ("Doc", "Says", "Adds", "Does", "is it")) == any(
        mark in drafts[0] for mark in ("Doc", "Says", "Adds", "Does", "is it")
    )


@pytest.mark.parametrize(
    ("text", "reader"),
    [("{", JsonSummariser()), ("a: [", YamlSummariser()), ("a:\n\t- b", YamlSummariser()), ("def (", PythonSummariser())],
)
def test_a_broken_text_falls_to_the_lines(text: str, reader: JsonSummariser | YamlSummariser | PythonSummariser) -> None:
    """What its parser refuses is summarised line by line."""
    kind = sorted(reader.kinds)[-1]
    whole = (text + "\n" + "key: some value and more of it\n" * 60).replace("def (\n", "def (\n" * 20)

    assert summarise("", whole, kind, ESTIMATE).strategy == "lines/2"
