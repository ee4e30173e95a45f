"""Summaries of code by its grammar keep every signature in its order, with what is documented above it."""

from __future__ import annotations

import pytest

from ctxmgr.context.summaries.grammar import GrammarSummariser

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
def test_signatures_of_other_languages_by_grammar(kind: str) -> None:
    """With a grammar every draft has the signatures, in order; the first also what is documented above and done below."""
    pytest.importorskip("tree_sitter")
    text, expected = CODE[kind]
    drafts = ["".join(parts) for parts in GrammarSummariser().drafts(text, kind)]

    for draft in drafts:
        assert [one for one in expected if one in draft] == expected
    assert "return" not in drafts[-1]
    assert ("return" in text) == ("return" in drafts[0])
    assert any(mark in text for mark in ("Doc", "Says", "Adds", "Does", "is it")) == any(
        mark in drafts[0] for mark in ("Doc", "Says", "Adds", "Does", "is it")
    )
