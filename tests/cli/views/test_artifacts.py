"""What a person sees of artifacts and versions, on terminals of any width."""

from __future__ import annotations

import pytest

from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.artifacts import show_artifact, show_artifacts, show_diff
from ctxmgr.types.artifact import ArtifactDiff, ArtifactView, GetResponse
from tests.cli.view_samples import draw


def artifact(*, agent: str, name: str, type: str, description: str) -> ArtifactView:  # noqa: A002 -- the field's name
    """Return an artifact of four bytes."""
    return ArtifactView(
        id="art_0123456789abcdef", agent=agent, name=name, type=type, version=12, hash="0" * 64, size=4, tokens=1234,
        counter="estimate", created_at="2026-01-22T14:03:22Z", path="p", description=description,
    )  # fmt: skip


def test_a_list_fits_a_small_terminal() -> None:
    """On 80 columns names, types and dates are whole: what gives way is the end of an id, the time of day, then the id."""
    row = artifact(agent="system_architect", name="docs/parser.md", type="markdown", description="how the parser is built")

    shown = {width: draw(lambda out: show_artifacts(out, [row]), width=width).splitlines()[1] for width in (80, 92, 98, 140)}

    assert shown[80].startswith("system_architect/docs/parser.md  markdown   1,234    v12  2026-01-22  how")
    assert "2026-01-22  art_01234567  how" in shown[92]
    assert "2026-01-22 14:03  art_01234567  how" in shown[98]
    assert "2026-01-22 14:03:22  art_0123456789abcdef  how the parser is built" in shown[140]


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202egnp", "x" * 300, "字" * 80])
def test_no_name_steers_the_terminal(text: str) -> None:
    """Whatever names, descriptions, authors and differing lines hold, no sign of theirs reaches the terminal as one."""
    item = artifact(agent=text, name=text, description=text, type="text")
    difference = ArtifactDiff(
        agent=text, name=text, from_id="art_1", to_id="art_2", from_version=1, to_version=2, identical=False,
        diff=f"@@ -1 +1 @@\n-{text}\n+{text}\n",
        added=1, removed=1,
    )  # fmt: skip

    def show(out: Printer) -> None:
        show_artifacts(out, [item])
        show_artifact(out, GetResponse(artifact=item, content=text, encoding="utf-8"))
        show_diff(out, difference)

    assert not {"\x1b", "\u202e", "\r"} & set(draw(show, width=80))
