"""``artifact`` through the command line: as a script calls it, as a person reads it, and every fault with its code."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from ctxmgr.types.artifact import ArtifactDiff, ArtifactView, GetResponse, PutResponse
from tests.artifacts.putting import meddle, object_of
from tests.cli.console import Ran, process, run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a few files and a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXMGR_STORE", str(tmp_path / "history.db"))
    (tmp_path / "a.yaml").write_text("a: 1\n")
    (tmp_path / "b.md").write_text("# B\n")
    return tmp_path


def _put(*arguments: str) -> PutResponse:
    ran = run("artifact", "put", *arguments, "--json")
    assert ran.code == 0, ran.out
    return PutResponse.model_validate(ran.envelope["data"])


@pytest.mark.parametrize("part", ["put", "get", "list", "log", "diff"])
def test_every_part_explains_itself_with_examples(part: str) -> None:
    """The help of each part shows examples that begin with it."""
    ran = run("artifact", part, "--help")

    assert ran.code == 0
    assert re.search(rf"\n +(?:.*\| )?ctxmgr artifact {part} ", ran.out.partition("Examples:")[2])


@pytest.mark.requirement("003-S1", "003-S4", "003-S5")
def test_a_script_puts_and_gets(place: Path) -> None:
    """A put answers id and version; a get by that id, by owner and name, or as of a version answers the content."""
    first = _put("a.yaml", "--agent", "arch", "--name", "plan.yaml", "-d", "the plan")
    (place / "a.yaml").write_text("a: 2\n")
    second = _put("a.yaml", "--agent", "arch", "--name", "plan.yaml")

    assert (first.version, second.version) == (1, 2)
    for words, content in (
        (("arch/plan.yaml",), "a: 2\n"), (("arch/plan.yaml", "--version", "1"), "a: 1\n"), ((str(first.id),), "a: 1\n"),
    ):  # fmt: skip
        found = run("artifact", "get", *words, "--json").envelope["data"]
        assert (found["content"], found["encoding"]) == (content, "utf-8")
        assert GetResponse.model_validate(found).to_json() == found


def test_content_goes_into_a_pipe_byte_for_byte(place: Path) -> None:
    """Piped, an artifact's content is exactly what was put, whatever it is: no filter, no line end, no escape of ours."""
    content = b"\x1b[31mred\0\xff\r\nno end"
    (place / "odd.bin").write_bytes(content)
    _put("odd.bin", "--agent", "ml")

    ran = process("artifact", "get", "ml/odd.bin")
    assert (ran.code, ran.out.encode("utf-8", "surrogateescape"), ran.err) == (0, content, "")
    told = run("artifact", "get", "ml/odd.bin", "--json").envelope["data"]
    assert (told["encoding"], base64.b64decode(told["content"])) == ("base64", content)


def test_content_is_read_from_stdin() -> None:
    """``-`` reads what comes in, under the name that is given with it."""
    ran = process("artifact", "put", "-", "--agent", "coder", "--name", "change.diff", "--json", given=b"+added\n")

    assert json.loads(ran.out)["data"]["version"] == 1
    assert process("artifact", "get", "coder/change.diff").out == "+added\n"


def test_content_is_written_to_a_file(place: Path) -> None:
    """With -o the content lies in the file, whole, in the place of what was there; a folder is refused."""
    _put("a.yaml", "--agent", "arch")
    (place / "out").write_text("before")

    assert run("artifact", "get", "arch/a.yaml", "-o", "out").code == 0
    assert (place / "out").read_text() == "a: 1\n"
    assert run("artifact", "get", "arch/a.yaml", "-o", str(place)).code == 2
    assert sorted(path.name for path in place.iterdir() if path.name.endswith(".part")) == []


def test_several_files_are_put_at_once() -> None:
    """Files named together make one version; a name for several of them is refused."""
    done = _put("a.yaml", "b.md", "--agent", "arch", "-m", "the first")

    assert (done.version, [item.name for item in done.artifacts]) == (1, ["a.yaml", "b.md"])
    assert run("version", "list", "--json").envelope["data"][0]["description"] == "the first"
    assert run("artifact", "put", "a.yaml", "b.md", "--agent", "arch", "--name", "x").code == 2


@pytest.mark.requirement("003-S8")
def test_dependencies_are_named_with_their_type() -> None:
    """--depends names an artifact, and after a colon the type; a colon in a name is part of the name."""
    _put("b.md", "--agent", "req", "--name", "a:b.md")
    _put("b.md", "--agent", "req")
    done = _put("a.yaml", "--agent", "arch", "--depends", "req/a:b.md", "--depends", "req/b.md:reference")

    assert [(item.name, item.type) for item in done.artifacts[0].dependencies] == [
        ("a:b.md", "required"),
        ("b.md", "reference"),
    ]


def test_lists_logs_and_diffs_have_rows_of_one_shape(place: Path) -> None:
    """The rows of a list and a log are artifacts, a difference is one object; filters and pages hold."""
    _put("a.yaml", "b.md", "--agent", "arch")
    (place / "a.yaml").write_text("a: 2\n")
    _put("a.yaml", "--agent", "arch")

    listed = run("artifact", "list", "--limit", "1", "--json").envelope
    assert (len(listed["data"]), listed["page"]["total"]) == (1, 2)
    logged = run("artifact", "log", "arch/a.yaml", "--json").envelope["data"]
    assert [row["version"] for row in logged] == [2, 1]
    for row in (*listed["data"], *logged):
        assert ArtifactView.model_validate(row).to_json() == row
    found = run("artifact", "diff", "arch/a.yaml", "--json").envelope["data"]
    assert ArtifactDiff.model_validate(found).to_json() == found
    assert "-a: 1\n+a: 2\n" in run("artifact", "diff", "arch/a.yaml").out
    assert run("artifact", "list", "--type", "markdown", "--format", "ndjson", "--fields", "name").out == '{"name":"b.md"}\n'
    assert "arch/a.yaml" in run("artifact", "list").out


def _fault(ran: Ran) -> tuple[int, str]:
    return ran.code, ran.envelope["error"]["kind"]


FAULTS: list[tuple[tuple[str, ...], int, str]] = [
    (("get", "arch/gone.yaml"), 3, "notFound"),
    (("get", "art_ffff"), 3, "notFound"),
    (("get", "arch/a.yaml", "--version", "9"), 3, "notFound"),
    (("get", "arch/a.yaml", "--version", "0"), 2, "invalid"),
    (("get", "art_ffff", "--version", "1"), 2, "invalid"),
    (("get", "noslash"), 2, "invalid"),
    (("log", "arch/gone.yaml"), 3, "notFound"),
    (("diff", "arch/a.yaml"), 3, "notFound"),
    (("list", "--version", "9"), 3, "notFound"),
    (("put", "gone.md", "--agent", "arch"), 3, "notFound"),
    (("put", ".", "--agent", "arch"), 2, "invalid"),
    (("put", "-", "--agent", "arch"), 2, "invalid"),
    (("put", "a.yaml", "--agent", "*"), 2, "invalid"),
    (("put", "a.yaml", "--agent", "arch", "--name", "../x"), 2, "invalid"),
    (("put", "a.yaml", "--agent", "arch", "--type", "poem"), 2, "invalid"),
    (("put", "a.yaml", "--agent", "arch", "--depends", "x"), 2, "invalid"),
    (("put", "a.yaml", "--agent", "arch", "--depends", "x/y"), 3, "notFound"),
]


@pytest.mark.parametrize(("arguments", "code", "kind"), FAULTS, ids=[" ".join(fault[0]) for fault in FAULTS])
def test_faults_have_one_code_and_two_forms(arguments: tuple[str, ...], code: int, kind: str) -> None:
    """A fault has its exit code and kind, on stderr or in the envelope."""
    _put("a.yaml", "--agent", "arch")

    text, told = run("artifact", *arguments), run("artifact", *arguments, "--json")

    assert (text.code, text.out) == (code, "")
    assert _fault(told) == (code, kind)


def test_changed_bytes_end_with_the_code_of_damage(place: Path) -> None:
    """Bytes that were changed behind the store's back are not printed; the exit code is that of a damaged store."""
    _put("a.yaml", "--agent", "arch")
    meddle(object_of(place / "artifacts", "a: 1\n"), b"evil\n")

    assert _fault(run("artifact", "get", "arch/a.yaml", "--json")) == (5, "damaged")
    ran = process("artifact", "get", "arch/a.yaml")
    assert (ran.code, ran.out) == (5, "")


@pytest.mark.requirement("003-S6")
def test_agents_put_and_get_under_the_rules() -> None:
    """As an agent one reads and writes what the rules grant: a denied write ends with 4, a denied read like a missing one."""
    _put("a.yaml", "--agent", "arch")
    for rule in (("coder", "artifact", "self", "--write"), ("coder", "artifact", "req/*")):
        assert run("access", "allow", *rule).code == 0

    assert run("artifact", "put", "b.md", "--agent", "coder", "--as", "coder").code == 0
    assert _fault(run("artifact", "put", "b.md", "--agent", "arch", "--as", "coder", "--json")) == (4, "denied")
    assert _fault(run("artifact", "get", "arch/a.yaml", "--as", "coder", "--json")) == (3, "notFound")
    assert run("artifact", "get", "coder/b.md", "--as", "coder").out == "# B\n"
    assert [row["name"] for row in run("artifact", "list", "--as", "coder", "--json").envelope["data"]] == ["b.md"]


def test_a_secret_is_warned_of(place: Path) -> None:
    """What looks like a secret is kept, and the answer warns of it."""
    (place / "env").write_text("key = sk-" + "ant-api03-" + "aB3" * 30 + "\n")

    assert "looks like a secret" in run("artifact", "put", "env", "--agent", "arch", "--json").envelope["warnings"][0]


def test_the_current_version_can_be_named() -> None:
    """``--version current`` means what no version means, in every command that takes one."""
    _put("a.yaml", "--agent", "arch")
    for words in (
        ("artifact", "get", "arch/a.yaml"), ("artifact", "list"), ("context", "request", "reader", "arch/a.yaml"),
    ):  # fmt: skip
        plain, named = run(*words, "--json"), run(*words, "--version", "current", "--json")
        assert (named.code, named.envelope["data"]) == (0, plain.envelope["data"])
    assert run("artifact", "get", "arch/a.yaml", "--version", "9" * 5000).code == 2


def test_who_asks_owns_what_it_puts() -> None:
    """Without an owner the artifact is the asking agent's; with nobody asking it is a fault."""
    assert run("access", "allow", "arch", "artifact", "self", "--write").code == 0

    assert _put("a.yaml", "--as", "arch").artifacts[0].agent == "arch"
    assert run("artifact", "put", "a.yaml").code == 2


def test_items_may_be_asked_for_as_options() -> None:
    """What an agent asks for is an argument or ``--item``, and something must be."""
    _put("a.yaml", "--agent", "arch")

    rows = run("context", "request", "reader", "arch/a.yaml", "--item", "arch/gone.yaml", "--json").envelope["data"]
    assert [row["status"] for row in rows] == ["success", "missing"]
    assert run("context", "request", "reader").code == 2


def test_a_run_is_recorded_however_agent_and_status_are_given() -> None:
    """Arguments, options, or one of each mean the same; none or two of one are refused."""
    for words in (
        ("coder", "completed"), ("--agent", "coder", "--status", "completed"), ("completed", "--agent", "coder"),
        ("coder", "--status", "completed"),
    ):  # fmt: skip
        done = run("execution", "record", *words, "--json").envelope["data"]
        assert (done["agent"], done["status"]) == ("coder", "completed")
    for words in (("coder",), ("coder", "completed", "--agent", "coder"), ("--status", "completed")):
        assert run("execution", "record", *words).code == 2


def _with_a_key(place: Path) -> str:
    key = "ghp_" + "a1B2" * 9
    (place / "notes.md").write_text(f"# Notes\n\nThe key is {key}.\n")
    return key


def test_a_secret_in_a_content_is_named_by_kind_and_line(place: Path) -> None:
    """The content is kept as it is; the warning on standard error names the kind and the line, never the secret."""
    key = _with_a_key(place)

    ran = run("artifact", "put", "notes.md", "--agent", "arch")

    assert ran.code == 0
    assert "notes.md holds what looks like a secret (github in line 3)" in " ".join(ran.err.split())
    assert key not in ran.out + ran.err
    assert run("artifact", "get", "arch/notes.md").out == (place / "notes.md").read_text()


def test_a_secret_is_refused_where_that_is_asked_for(place: Path) -> None:
    """With --reject-secrets nothing is stored, no bytes of the content either, and the code is that of wrong usage."""
    key = _with_a_key(place)

    ran = run("artifact", "put", "a.yaml", "notes.md", "--agent", "arch", "--reject-secrets", "--json")

    assert ran.code == 2
    assert "github in line 3" in ran.envelope["error"]["message"]
    assert run("artifact", "list", "--json").envelope["data"] == []
    kept = [path for path in place.rglob("*") if path.is_file() and path.name != "notes.md"]
    assert not any(key.encode() in path.read_bytes() for path in kept)


def test_a_secret_may_be_kept_silently(place: Path) -> None:
    """--allow-secrets says nothing; both options at once are an error."""
    _with_a_key(place)

    assert run("artifact", "put", "notes.md", "--agent", "arch", "--allow-secrets", "--json").envelope["warnings"] == []
    assert run("artifact", "put", "notes.md", "--agent", "arch", "--allow-secrets", "--reject-secrets").code == 2


def test_markdown_holds_the_content_of_an_artifact_and_what_a_package_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content stands in a fence below the metadata; other bytes are not shown. A package is drawn."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text("service: invoices\n")
    (tmp_path / "x.bin").write_bytes(b"\0\xff")
    run("artifact", "put", "plan.yaml", "x.bin", "--agent", "sa")
    shown = run("artifact", "get", "sa/plan.yaml", "--format", "md").out
    package = run("context", "assemble", "dev", "--with", "sa/plan.yaml", "--format", "md").out

    assert shown.endswith("\n```\nservice: invoices\n```\n")
    assert "```" not in run("artifact", "get", "sa/x.bin", "--format", "md").out
    assert "| full | sa/plan.yaml |" in package
    assert "context_package:" not in package
    assert run("context", "assemble", "dev").out.startswith("context_package:")
