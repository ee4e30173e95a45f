"""Tables of each language's grammar: definitions, containers and bodies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language.

    Attributes:
        package: the wheel's module, and ``function`` what gives the language in it.
        definitions: node types that are told, up to their body.
        holders: definitions, and other nodes, whose inside is read for further definitions.
        data: definitions that are told with their body where there is room: fields and cases are their signature.
        inner: definitions that count only inside a holder (a class's fields are told, a function's variables are not).
    """

    package: str
    definitions: frozenset[str]
    holders: frozenset[str]
    data: frozenset[str] = frozenset()
    function: str = "language"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


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
_TS_DATA = _set("interface_declaration type_alias_declaration enum_declaration")
_C_DEFINITIONS = (
    "function_definition prototype struct_specifier union_specifier enum_specifier type_definition preproc_function_def"
)
_C_HOLDERS = (
    "translation_unit preproc_if preproc_ifdef preproc_else preproc_elif linkage_specification declaration_list declaration"
)
_C_DATA = "struct_specifier union_specifier enum_specifier type_definition"

GRAMMARS = {
    "javascript": Grammar("tree_sitter_javascript", _set(_JS_DEFINITIONS), _set(_JS_HOLDERS)),
    "typescript": Grammar("tree_sitter_typescript", _set(_TS_DEFINITIONS), _set(_TS_HOLDERS), _TS_DATA, "language_typescript"),
    "tsx": Grammar("tree_sitter_typescript", _set(_TS_DEFINITIONS), _set(_TS_HOLDERS), _TS_DATA, "language_tsx"),
    "go": Grammar(
        "tree_sitter_go",
        _set("package_clause function_declaration method_declaration type_declaration"),
        _set("source_file"),
        _set("type_declaration"),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        _set(
            "function_item function_signature_item struct_item enum_item union_item trait_item impl_item mod_item type_item"
            " const_item static_item macro_definition associated_type"
        ),
        _set("source_file trait_item impl_item mod_item declaration_list foreign_mod_item"),
        _set("struct_item enum_item union_item type_item"),
    ),
    "java": Grammar(
        "tree_sitter_java",
        _set(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
            " method_declaration constructor_declaration compact_constructor_declaration package_declaration"
        ),
        _set(
            "program class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
            " class_body interface_body enum_body enum_body_declarations annotation_type_body"
        ),
    ),
    "c": Grammar("tree_sitter_c", _set(_C_DEFINITIONS), _set(_C_HOLDERS), _set(_C_DATA)),
    "cpp": Grammar(
        "tree_sitter_cpp",
        _set(f"{_C_DEFINITIONS} class_specifier namespace_definition alias_declaration concept_definition"),
        _set(f"{_C_HOLDERS} class_specifier struct_specifier namespace_definition field_declaration_list template_declaration"),
        _set("union_specifier enum_specifier type_definition alias_declaration"),
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        _set("method singleton_method class module"),
        _set("program class module singleton_class body_statement call argument_list if unless"),
    ),
    "shell": Grammar(
        "tree_sitter_bash", _set("function_definition"), _set("program if_statement else_clause compound_statement")
    ),
}

PROTOTYPES = frozenset({"declaration", "field_declaration"})
"""C and C++ nodes that declare a function where one of their declarators is a function's."""
