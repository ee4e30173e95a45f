"""Summarise code by tree-sitter grammars; define the protocol of summarisers, and choose one for a text."""

from __future__ import annotations

import importlib
import importlib.util
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, cast

from ctxmgr.context.summaries.prose import (
    BODY_LINES,
    Draft,
    body_lines,
    cut_body,
    first_sentence,
    join_lines,
    one_line,
    shorten,
)
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.text.tokens import JSON, MARKDOWN, PYTHON, TEXT, YAML, Counter, content_kind, known_kind

if TYPE_CHECKING:
    from tree_sitter import Language, Node


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of one language.

    Attributes:
        package: module of the wheel; ``function`` in it returns the language.
        definitions: node types to list, up to their body.
        holders: nodes that may contain further definitions, such as classes.
        data: definitions listed with their body if there is room, because fields and cases are their signature.
    """

    package: str
    definitions: frozenset[str]
    holders: frozenset[str]
    data: frozenset[str] = frozenset()
    function: str = "language"


_JS_DEFINITIONS = "function_declaration generator_function_declaration class_declaration method_definition arrow_definition"
_JS_HOLDERS = (
    "program export_statement class_declaration class_body class statement_block if_statement else_clause try_statement"
    " expression_statement lexical_declaration variable_declaration variable_declarator"
)
_TS_DEFINITIONS = (
    f"{_JS_DEFINITIONS} abstract_class_declaration interface_declaration type_alias_declaration enum_declaration"
    " method_signature abstract_method_signature function_signature internal_module module call_signature construct_signature"
)
_TS_HOLDERS = f"{_JS_HOLDERS} abstract_class_declaration internal_module module ambient_declaration"
_TS_DATA = word_set("interface_declaration type_alias_declaration enum_declaration")
_C_DEFINITIONS = (
    "function_definition prototype struct_specifier union_specifier enum_specifier type_definition preproc_function_def"
)
_C_HOLDERS = (
    "translation_unit preproc_if preproc_ifdef preproc_else preproc_elif linkage_specification declaration_list declaration"
)
_C_DATA = "struct_specifier union_specifier enum_specifier type_definition"

GRAMMARS = {
    "javascript": Grammar("tree_sitter_javascript", word_set(_JS_DEFINITIONS), word_set(_JS_HOLDERS)),
    "typescript": Grammar(
        "tree_sitter_typescript", word_set(_TS_DEFINITIONS), word_set(_TS_HOLDERS), _TS_DATA, "language_typescript"
    ),
    "tsx": Grammar("tree_sitter_typescript", word_set(_TS_DEFINITIONS), word_set(_TS_HOLDERS), _TS_DATA, "language_tsx"),
    "go": Grammar(
        "tree_sitter_go",
        word_set("package_clause function_declaration method_declaration type_declaration"),
        word_set("source_file"),
        word_set("type_declaration"),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        word_set(
            "function_item function_signature_item struct_item enum_item union_item trait_item impl_item mod_item type_item"
            " const_item static_item macro_definition associated_type"
        ),
        word_set("source_file trait_item impl_item mod_item declaration_list foreign_mod_item"),
        word_set("struct_item enum_item union_item type_item"),
    ),
    "java": Grammar(
        "tree_sitter_java",
        word_set(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
            " method_declaration constructor_declaration compact_constructor_declaration package_declaration"
        ),
        word_set(
            "program class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
            " class_body interface_body enum_body enum_body_declarations annotation_type_body"
        ),
    ),
    "c": Grammar("tree_sitter_c", word_set(_C_DEFINITIONS), word_set(_C_HOLDERS), word_set(_C_DATA)),
    "cpp": Grammar(
        "tree_sitter_cpp",
        word_set(f"{_C_DEFINITIONS} class_specifier namespace_definition alias_declaration concept_definition"),
        word_set(
            f"{_C_HOLDERS} class_specifier struct_specifier namespace_definition field_declaration_list template_declaration"
        ),
        word_set("union_specifier enum_specifier type_definition alias_declaration"),
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        word_set("method singleton_method class module"),
        word_set("program class module singleton_class body_statement call argument_list if unless"),
    ),
    "shell": Grammar(
        "tree_sitter_bash", word_set("function_definition"), word_set("program if_statement else_clause compound_statement")
    ),
}

PROTOTYPES = frozenset({"declaration", "field_declaration"})
"""C and C++ nodes that declare a function if one of their declarators is a function's."""


_BODY_TYPES = frozenset(
    {
        "declaration_list",
        "field_declaration_list",
        "ordered_field_declaration_list",
        "enumerator_list",
        "enum_variant_list",
        "class_body",
        "interface_body",
        "enum_body",
        "body_statement",
    }
)
_WRAPPERS = frozenset({"export_statement", "template_declaration", "lexical_declaration", "variable_declaration"})
_ATTRIBUTES = frozenset({"attribute_item", "decorator", "marker_annotation", "annotation"})
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_COMMENT_SIGNS = " \t/*#!"
_MAX_NODES = 200_000
_PROBE = 8_000  # bytes
_FREE_STEPS, _STEPS_A_KILOBYTE = 60, 10  # real code takes 4 to 8; with more, the parser needs quadratic time


@dataclass(frozen=True, slots=True)
class Signature:
    """A definition: nesting depth, text up to the body, text with the body (for data), comment, lines of the body."""

    depth: int
    head: str
    whole: str
    doc: str
    body: tuple[str, ...] = ()


class GrammarSummariser:
    """Summarises ten languages, each with its own wheel. Without the wheel, the next summariser gets the text."""

    strategy = "grammar/3"
    kinds = frozenset(GRAMMARS)
    target = 30
    limit = 400_000

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield summaries, the last one with only the signatures. Raises ImportError or ValueError without the wheel."""
        found = list(_Walk(GRAMMARS[kind], text.encode("utf-8", "replace")).signatures(_language(kind)))
        mark = "#" if kind in ("ruby", "shell") else "//"
        if not found:
            return
        for count in BODY_LINES:
            yield tuple(_write(found, 240, 400, mark, count))
        for doc, data in ((240, 400), (160, 200), (100, 120), (60, 0), (0, 0)):
            yield tuple(_write(found, doc, data, mark))


def has_grammar(kind: str) -> bool:
    """Whether the wheels for a kind are installed. Loads nothing."""
    return kind in GRAMMARS and all(importlib.util.find_spec(name) for name in ("tree_sitter", GRAMMARS[kind].package))


@lru_cache(maxsize=len(GRAMMARS))
def _language(kind: str) -> Language:
    from tree_sitter import Language

    grammar = GRAMMARS[kind]
    return Language(cast("object", getattr(importlib.import_module(grammar.package), grammar.function)()))


class _Walk:
    """One walk over a syntax tree, with its own stack, because a hostile text may nest deeper than Python can recurse."""

    def __init__(self, grammar: Grammar, source: bytes) -> None:
        self._grammar = grammar
        self._source = source

    def signatures(self, language: Language) -> Iterator[Signature]:
        """Yield the definitions in order.

        Raises:
            ValueError: the parser takes too many steps, there are too many nodes, or the grammar can't read most of the text.
        """
        self._parse(language, self._source[:_PROBE])  # hostile texts are mostly slow from the start, so find out cheaply
        root = self._parse(language, self._source)
        if root.type == "ERROR":
            raise ValueError("the grammar can't read it")
        stack: list[tuple[Node, int, Node]] = [(root, 0, root)]
        for _ in range(_MAX_NODES):
            if not stack:
                return
            node, depth, outer = stack.pop()
            is_definition = self._is_definition(node)
            if is_definition:
                yield self._signature(node, depth, outer)
            # Unfinished code has errors. The definitions inside them are read too.
            if node.type in self._grammar.holders or node.type == "ERROR":
                inside = (self._body(node) or node) if is_definition else node
                children = [child for child in inside.children if child.is_named]
                # Text and comment of a definition begin at its wrapper: ``export``, or ``template <...>``.
                wrapped = outer if node.type in _WRAPPERS and node.type == outer.type else node
                start = wrapped if node.type in _WRAPPERS else None
                stack.extend((child, depth + is_definition, start or child) for child in reversed(children))
        raise ValueError("too many nodes")

    def _parse(self, language: Language, source: bytes) -> Node:
        """Return the root of the tree. Raises ValueError after too many steps; a time limit would not be deterministic."""
        from tree_sitter import Parser

        steps = 0

        def too_slow(offset: int, has_error: bool) -> bool:
            nonlocal steps
            steps += 1
            return steps > _FREE_STEPS + offset * _STEPS_A_KILOBYTE // 1_000

        def read(offset: int, place: object) -> bytes:
            return source[offset : offset + 65_536]

        return Parser(language).parse(read, progress_callback=too_slow).root_node

    def _is_definition(self, node: Node) -> bool:
        kind = node.type
        # ``struct point p`` only names a struct, and a struct without a name is a part of another definition.
        if kind in ("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"):
            return node.child_by_field_name("body") is not None and node.child_by_field_name("name") is not None
        if kind in self._grammar.definitions:
            return True
        if kind in PROTOTYPES and "prototype" in self._grammar.definitions:
            return _declares_function(node)
        if kind in ("variable_declarator", "field_definition", "public_field_definition"):
            value = node.child_by_field_name("value")
            functions = ("arrow_function", "function_expression", "generator_function", "class")
            return "arrow_definition" in self._grammar.definitions and value is not None and value.type in functions
        return False

    def _body(self, node: Node) -> Node | None:
        body = node.child_by_field_name("body")
        if body is not None:
            return body
        value = node.child_by_field_name("value")
        if value is not None and node.type.endswith(("declarator", "field_definition")):
            return value.child_by_field_name("body")
        if node.type == "preproc_function_def":
            return value
        return next((child for child in node.children if child.type in _BODY_TYPES), None)

    def _signature(self, node: Node, depth: int, outer: Node) -> Signature:
        around = outer.start_byte <= node.start_byte and outer.end_byte >= node.end_byte
        start = outer.start_byte if around else node.start_byte
        data = node.type in self._grammar.data
        body = _inner_body(node) if data else self._body(node)
        end = body.start_byte if body is not None else node.end_byte
        head = _text(self._source[start:end]).rstrip("{ =\n\t")
        # Text after the body belongs to the definition, such as the name of a ``typedef``.
        if data and body is not None:
            head += " " + _text(self._source[body.end_byte : node.end_byte])
        whole = _text(self._source[start : node.end_byte]) if data else ""
        does = _text(self._source[body.start_byte : body.end_byte]) if body is not None and not data else ""
        # The content of a class or module is listed as separate definitions.
        lines = body_lines(does.splitlines()) if node.type not in self._grammar.holders else ()
        return Signature(depth, one_line(head), one_line(whole), self._doc(outer), lines)

    def _doc(self, node: Node) -> str:
        """Return the first paragraph of the comments directly above a node and its attributes."""
        lines: list[str] = []
        below, above = node, node.prev_named_sibling
        while above is not None and above.type in _COMMENTS | _ATTRIBUTES and _touches(above, below):
            if above.type in _COMMENTS:
                lines[:0] = _text(self._source[above.start_byte : above.end_byte]).splitlines()
            below, above = above, above.prev_named_sibling
        words: list[str] = []
        for line in lines[:200]:
            bare = line.strip(_COMMENT_SIGNS)
            # Tags such as ``@param`` are not part of a summary.
            if words and (not bare or bare.startswith("@")):
                break
            words += [bare] if bare else []
        return " ".join(words)


def _inner_body(node: Node) -> Node | None:
    """Return the body with the fields or cases of a definition. It may be inside the type that the definition names."""
    level = [node]
    for _ in range(4):
        found = next((child for one in level for child in one.children if child.type in _BODY_TYPES), None)
        if found is not None:
            return found
        level = [child for one in level for child in one.children[:20] if child.is_named]
    return None


def _touches(above: Node, below: Node) -> bool:
    # In some grammars, a comment includes its line end, so it ends at the beginning of the next line.
    gap = below.start_point[0] - above.end_point[0]
    return gap <= (0 if above.end_point[1] == 0 else 1)


def _declares_function(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    for _ in range(10):
        if declarator is None or declarator.type == "function_declarator":
            return declarator is not None
        declarator = declarator.child_by_field_name("declarator")
    return False


def _text(source: bytes) -> str:
    return source.decode("utf-8", "replace")


def _write(found: list[Signature], doc: int, data: int, mark: str, body: int = 0) -> Iterator[str]:
    for signature in found:
        indent = "  " * min(signature.depth, 20)
        lines = [f"{indent}{mark} {first_sentence(signature.doc, doc)}"] if doc and signature.doc else []
        whole = data and signature.whole
        lines.append(indent + (shorten(signature.whole, max(data, len(signature.head) + 1)) if whole else signature.head))
        yield join_lines([*lines, *cut_body(signature.body, body, indent + "  ")])


@dataclass(frozen=True, slots=True)
class Summary:
    """A shorter text for a longer one.

    Attributes:
        text: the summary, or the original if no summary is shorter.
        strategy: name and version of the summariser, used in cache keys; ``none`` if the text is the original.
        tokens: size of ``text``.
        original_tokens: size of the original, by the same counter.
        lossless: whether the text is the full original.
    """

    text: str
    strategy: str
    tokens: int
    original_tokens: int
    lossless: bool


class Summariser(Protocol):
    """Shortens texts of one family of kinds by their structure.

    Attributes:
        strategy: name and version; any change of the output needs a new version, because summaries are cached.
        kinds: the kinds that it reads, from `ctxmgr.text.tokens.KINDS`.
        target: upper limit of a summary in percent of the original's tokens; a summary may always have `SMALL` tokens.
        limit: maximum length of a text in characters; longer texts go to the next summariser.
    """

    @property
    def strategy(self) -> str: ...  # noqa: D102 - see the class

    @property
    def kinds(self) -> frozenset[str]: ...  # noqa: D102 - see the class

    @property
    def target(self) -> int: ...  # noqa: D102 - see the class

    @property
    def limit(self) -> int: ...  # noqa: D102 - see the class

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield summaries, from the most detailed to the shortest, each in one piece or in its parts.

        If it can't read the text, it may raise any exception or yield nothing. Then the next summariser gets the text.
        """
        ...


SMALL = 40
"""Texts up to this number of tokens are not summarised, because nothing useful would be left. A summary may be as long."""

_FRAMES = {MARKDOWN: ("<!-- ", " -->"), TEXT: ("[", "]")}
_HASHES = (YAML, JSON, PYTHON, "ruby", "shell")
_NOTE = "summary by structure; in full: {tokens:,} tokens"
_NOTE_PATTERN = lazy_pattern(r"(?:<!-- |\[|# |// )summary by structure; in full: [\d,]{1,20} tokens(?: -->|\])?\n")


def summarise_with(
    summarisers: Sequence[Summariser], name: str, text: str, kind: str, counter: Counter, most: int | None = None
) -> Summary:
    """Return the summary by the first summariser that can read the text; see `ctxmgr.context.summaries.summarise`."""
    kind = known_kind(kind) if kind.strip() else content_kind(name, text)
    original = counter.count(text, kind)
    whole = Summary(text, "none", original, original, lossless=True)
    # Remove the note of an earlier summary, so that a summary of a summary has only one.
    note = _NOTE_PATTERN.match(text)
    body = text[note.end() :] if note else text
    if original <= SMALL or not body.strip():
        return whole
    for summariser in summarisers:
        if kind in summariser.kinds and len(text) <= summariser.limit:
            found = _choose_draft(summariser, body, kind, counter, whole, most)
            if found is not None:
                return found
    return whole


def _choose_draft(
    summariser: Summariser, body: str, kind: str, counter: Counter, whole: Summary, most: int | None
) -> Summary | None:
    """Return a summary, ``whole`` if no draft is shorter, or None without drafts."""
    target = max(whole.original_tokens * summariser.target // 100, SMALL)
    target = target if most is None else min(target, most)
    head = _header(kind, whole.original_tokens)

    def fits(parts: Draft) -> bool:
        return counter.count(head + "".join(parts), kind) <= target

    longer, parts = "", None
    try:
        for parts in summariser.drafts(body, kind):
            if fits(parts):
                break
            longer = parts
    except Exception:  # a parser may raise anything on a hostile text; the next summariser uses none
        return None
    if parts is None:
        return None
    draft = "".join(_fill(parts, longer, fits) if parts is not longer else parts)
    # Drop the note if the summary is longer than the text only because of the note.
    for text in (head + draft, draft):
        tokens = counter.count(text, kind)
        if tokens < whole.original_tokens and len(text) < len(whole.text):
            return Summary(text, summariser.strategy, tokens, whole.original_tokens, lossless=False)
    return whole


def _fill(parts: Draft, longer: Draft, fits: Callable[[Draft], bool]) -> Draft:
    """Return a draft with as many of its first parts as fit replaced by those of the longer draft."""
    if isinstance(parts, str) or isinstance(longer, str) or len(parts) != len(longer):
        return parts
    more = bisect_left(range(1, len(parts)), True, key=lambda count: not fits((*longer[:count], *parts[count:])))
    return (*longer[:more], *parts[more:])


def _header(kind: str, tokens: int) -> str:
    opening, closing = _FRAMES.get(kind, ("# ", "") if kind in _HASHES else ("// ", ""))
    return f"{opening}{_NOTE.format(tokens=tokens)}{closing}\n"
