"""What a project's own settings file may set, what it may not, and how the user trusts it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ctxmgr import config
from ctxmgr import config as trust
from ctxmgr.config import SETTINGS, find_store, load_config
from ctxmgr.errors import InvalidInput
from tests.cli.console import process, run

GRANTS = {
    "store": 'store = "{outside}/h.db"\n',
    "recover.model": '[recover.model]\nname = "openai:x"\nbase_url = "http://127.0.0.1:9/v1"\n',
    "live.exec": '[live]\nexec = ["sh", "-c", "true"]\n',
    "goal.allow_commands": "[goal]\nallow_commands = true\n",
}
RECORD = b'{"v":1,"kind":"session","session":"s","ts":"2026-01-21T00:00:00Z","process":"p"}\n'
TUNES = (
    'store = ".ctxmgr/h.db"\n[detect]\nrepeat_rounds = 4\n[recover]\nattempts = 3\ndiff = true\n'
    "routes = \"routes.toml\"\nmodel = 'none'\n[goal]\nallow_commands = false\n[artifacts]\nkeep = 3\n"
    '[live]\nmode = "watch"\nquiet_kinds = ["cycle"]\nquiet_actions = ["poll"]\nexec = []\nwatch = false\ndesktop = false\n'
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project; no variable names a store."""
    monkeypatch.delenv("CTXMGR_STORE")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _user(text: str) -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "ctxmgr" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _write(project: Path, text: str, shared: bool = False) -> Path:
    """Write the text as the project's settings, in either of its two files."""
    path = project / ("pyproject.toml" if shared else "ctxmgr.toml")
    if shared:
        first, bracket, rest = text.partition("[")
        text = f"[tool.ctxmgr]\n{first}{bracket}{rest}".replace("\n[", "\n[tool.ctxmgr.").replace(
            "[tool.ctxmgr.tool.ctxmgr]", "[tool.ctxmgr]"
        )
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", GRANTS)
def test_a_project_grants_itself_nothing(name: str, shared: bool, project: Path, tmp_path: Path) -> None:
    """What only the user may set is left out and named with what to do; trust of this very content lets it in."""
    path = _write(project, GRANTS[name].format(outside=tmp_path / "outside"), shared)

    found = load_config(project)
    assert (found.refused, found.trusted, found.origins) == ((name,), False, {})
    assert (found.store, found.model, found.allow_commands, found.live_exec) == (None, {}, False, ())
    [line] = found.warnings()
    assert str(path) in line
    assert name in line
    assert "ctxmgr trust" in line

    trust.grant(path, path.read_bytes(), (), os.environ)
    found = load_config(project)
    assert (found.refused, found.trusted, found.origins) == ((), True, {name: "project"})

    path.write_bytes(path.read_bytes() + b"\n")
    assert load_config(project).refused == (name,)


def test_a_project_tunes(project: Path) -> None:
    """Thresholds, attempts, a store inside the folder, and whatever takes away need no trust."""
    _write(project, TUNES)

    found = load_config(project)

    assert (found.refused, found.attempts, found.diff, found.model) == ((), 3, True, {"name": "none"})
    assert (found.store, found.routes) == (str(project / ".ctxmgr/h.db"), project / "routes.toml")
    assert set(found.origins) == set(SETTINGS), "a setting is missing from this test"


def test_every_setting_is_in_the_table(project: Path) -> None:
    """A setting that the table does not know is refused, so that none can be added without deciding who may set it."""
    for text in ("hooks = true\n", "[recover]\nexec = 'x'\n", "[goal]\nshell = 'x'\n"):
        _write(project, text)
        with pytest.raises(InvalidInput, match="unknown setting"):
            load_config(project)


OUTSIDE = ["../h.db", "/tmp/h.db", "a/../../h.db", "link/h.db", "postgresql://host/db", "file:///tmp/x", "~/a/../../../x", "."]


@pytest.mark.cases(1)
@pytest.mark.parametrize("store", OUTSIDE)
def test_a_store_outside_of_the_project_is_refused(store: str, project: Path, tmp_path: Path) -> None:
    """By its name and by every link on the way: on the fast path as well, which reads the file by itself."""
    (tmp_path / "elsewhere").mkdir()
    (project / "link").symlink_to(tmp_path / "elsewhere")
    _write(project, f'store = "{store}"\n')

    assert load_config(project).refused == ("store",)
    assert run("list", "--json").out == process("list", "--json").out
    for form in ("--json", "--format=ndjson", "--format=md"):
        ran = process("list", form)
        assert (ran.code, ran.err.count("left out")) == (0, 1)
    assert "sets store" in process("list", "--json").envelope["warnings"][0]
    assert process("record", given=RECORD).code == 0
    assert (project / ".ctxmgr" / "history.db").is_file()
    assert [item.name for item in tmp_path.rglob("*.db")] == ["history.db"]


def test_the_order_of_origins(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment before the project's file, that before the user's own, that before what is built in."""
    user = _user('store = "mine.db"\n[detect]\nrepeat_rounds = 5\ncycle_rounds = 6\n[recover]\nattempts = 4\n')
    found = load_config(project)
    assert (found.store, found.attempts, found.user, found.path) == (str(user.parent / "mine.db"), 4, user, None)
    assert find_store(project, {}, found) == (str(user.parent / "mine.db"), True)

    _write(project, 'store = "h.db"\n[detect]\nrepeat_rounds = 4\n')
    found = load_config(project)
    assert (found.store, found.attempts) == (str(project / "h.db"), 4)
    assert found.detect == {"repeat_rounds": 4, "cycle_rounds": 6}
    assert (found.find_file("store"), found.find_file("recover.attempts")) == (project / "ctxmgr.toml", user)
    assert find_store(project, {"CTXMGR_STORE": "env.db"}, found) == ("env.db", True)

    for folder in ("relative", ""):
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        assert load_config(project).user is None


def test_the_users_store_holds_on_the_quick_path(project: Path, tmp_path: Path) -> None:
    """A store that the user's own file names is read and written whichever way the command goes."""
    _user(f'store = "{tmp_path}/mine.db"\n')
    assert process("record", given=RECORD).code == 0

    assert (tmp_path / "mine.db").is_file()
    assert len(process("sessions", "--json").envelope["data"]) == 1
    assert len(run("sessions", "--json").envelope["data"]) == 1
    assert process("list", "--json").envelope["warnings"] == []


def test_a_users_file_that_others_can_write_is_refused(project: Path) -> None:
    """It grants things, so it must be the user's alone to write."""
    path = _user("[recover]\nattempts = 4\n")
    path.chmod(0o666)

    with pytest.raises(InvalidInput, match="others can write it"):
        load_config(project)


def test_trust_is_kept_privately_and_believed_only_so(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files 0600 in folders 0700; a record that others could have written, of another place or content, counts nothing."""
    path = _write(project, GRANTS["goal.allow_commands"])
    trust.grant(path, path.read_bytes(), {"f"}, os.environ)
    folder = Path(trust.trust_folder(os.environ))
    [record] = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777, record.stat().st_mode & 0o777) == (
        0o700, 0o700, 0o600,
    )  # fmt: skip
    assert load_config(project).trusted_commands == {"f"}

    for place, mode in ((record, 0o640), (folder, 0o770)):
        was = place.stat().st_mode
        place.chmod(mode)
        assert not load_config(project).trusted
        place.chmod(was)
    assert load_config(project).trusted

    text = record.read_text("utf-8")
    for odd in (
        "",
        "[" * 5_000,
        "[]",
        "{}",
        text.replace(str(path), "/other"),
        text.replace('"commands": ["f"]', '"commands": 5'),
    ):
        record.write_text(odd, "utf-8")
        assert not load_config(project).trusted
    record.unlink()
    (tmp_path / "record").write_text(text, "utf-8")
    (tmp_path / "record").chmod(0o600)
    record.symlink_to(tmp_path / "record")
    assert not load_config(project).trusted
    record.unlink()
    (tmp_path / "record").rename(record)
    assert load_config(project).trusted

    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert not load_config(project).trusted


def test_no_project_brings_its_own_trust(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder that lies in the project is neither believed nor written."""
    path = _write(project, GRANTS["goal.allow_commands"])
    trust.grant(path, path.read_bytes(), (), os.environ)
    planted = Path(trust.trust_folder(os.environ)).rename(project / "trust")
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    (project / "state" / "ctxmgr").mkdir(parents=True)
    planted.rename(project / "state" / "ctxmgr" / "trust")
    assert not load_config(project).trusted
    with pytest.raises(InvalidInput, match="same project"):
        trust.grant(path, path.read_bytes(), (), os.environ)

    outside = project.parent / "state-link"
    outside.symlink_to(project / "state")
    monkeypatch.setenv("XDG_STATE_HOME", str(outside))
    assert not load_config(project).trusted


def test_a_copy_of_a_trusted_project_is_not_trusted(project: Path) -> None:
    """Trust is of one place: the same content elsewhere, and behind a link to it, is another file."""
    path = _write(project, GRANTS["goal.allow_commands"])
    trust.grant(path, path.read_bytes(), (), os.environ)
    copy = project.parent / "copy"
    copy.mkdir()
    (copy / "ctxmgr.toml").write_bytes(path.read_bytes())
    assert not load_config(copy).trusted
    (copy / "ctxmgr.toml").unlink()
    (copy / "ctxmgr.toml").symlink_to(path)
    assert not load_config(copy).trusted

    above = project.parent / "above"
    above.symlink_to(project)
    assert load_config(above).trusted, "the same folder by another name"


def test_trust_is_given_shown_listed_and_revoked(project: Path) -> None:
    """The command says what it grants before and after; nothing but the plain call changes anything."""
    path = _write(project, GRANTS["goal.allow_commands"] + GRANTS["recover.model"])

    def rows(*words: str) -> list[dict[str, object]]:
        return json.loads(run("trust", *words, "--json").out)["data"]

    [row] = rows("--show")
    assert (row["path"], row["trusted"], sorted(row["grants"])) == (  # type: ignore[arg-type]
        str(path), False, ["goal.allow_commands", "recover.model"],
    )  # fmt: skip
    assert (rows("--list"), rows("--revoke")) == ([], [])
    assert [row["trusted"] for row in (*rows(), *rows("--show"), *rows("--list"))] == [True] * 3
    assert "allow_commands = true" in run("trust", "--show").out
    assert run("doctor").out.count("left out") == 0
    path.write_text("[goal]\nallow_commands = true\n#\n", "utf-8")
    assert [row["trusted"] for row in (*rows("--show"), *rows("--list"))] == [False] * 2
    assert "left out" in run("doctor").out
    path.unlink()
    assert (rows("--revoke")[0]["trusted"], rows("--list")) == (False, [])

    assert run("trust").code == 3
    assert run("trust", "--list", "--show").code == 2
    assert run("trust", "nowhere").code == 2


def test_settings_nested_without_end_are_a_plain_mistake(project: Path) -> None:
    """20,000 brackets end with a usage error on every path; in a shared file they are not ours to complain about."""
    deep = "x = " + "[" * 20_000
    _write(project, deep)
    for words in (["list", "--json"], ["list"], ["detect", "--json"], ["trust"], ["goal", "probe", "check"]):
        ran = run(*words)
        assert (ran.code, "nested too deeply" in ran.out + ran.err) == (2, True) or words[0] == "goal", (words, ran)
    (project / "ctxmgr.toml").unlink()
    (project / "pyproject.toml").write_text("[tool.ctxmgr]\n" + deep, "utf-8")
    assert run("list", "--json").code == 0


def test_a_settings_file_is_regular_and_of_a_bearable_size(project: Path) -> None:
    """A pipe in its place is passed by; one that is too large is refused; neither hangs."""
    os.mkfifo(project / "ctxmgr.toml")
    assert load_config(project) == config.Config()
    (project / "ctxmgr.toml").unlink()
    (project / "ctxmgr.toml").symlink_to("/dev/zero")
    assert load_config(project) == config.Config()
    (project / "ctxmgr.toml").unlink()
    (project / "ctxmgr.toml").write_text("#" * 1_000_001, "utf-8")
    with pytest.raises(InvalidInput, match="larger than"):
        load_config(project)
    user = _user("")
    user.unlink()
    os.mkfifo(user)
    with pytest.raises(InvalidInput, match="not a regular file"):
        load_config(project)
