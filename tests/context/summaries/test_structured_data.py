"""Outlines of JSON and YAML: keys, order, comments and sizes stay; nothing is constructed, and a bomb stays small."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

from ctxmgr.context.summaries import summarise
from ctxmgr.context.summaries.structured_data import YamlSummariser
from ctxmgr.text.tokens import ESTIMATE


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

    drafts = list(YamlSummariser().drafts(bomb, "yaml"))
    assert drafts
    assert all(len(draft) < 2_000 for draft in drafts)
