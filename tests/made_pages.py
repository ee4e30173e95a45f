"""The pages and the picture that are made from the program; ``python -m tests.made_pages`` renews them.

`tests/test_made_pages.py` fails where one is not what it would be now. ``python -m tests.readme`` without a page renews
these too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from importlib import metadata
from io import StringIO
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from ctxmgr.cli.exits import _BY_KIND, MEANINGS  # pyright: ignore[reportPrivateUsage]
from ctxmgr.config import SETTINGS
from ctxmgr.detect.settings import DetectSettings
from tests.readme import ROOT, terminal_output

_MAY = {
    "free": "yes",
    "inside": "inside its own folder",
    "restrict": "only to switch it off",
}
_VARIABLES = {
    "CTXMGR_STORE": "the store, where `--store` names none",
    "CTXMGR_FORMAT": "how answers are printed, where `--format` does not say",
    "CTXMGR_MODEL": "the language model, `provider:name`; `none` asks none",
    "CTXMGR_BASE_URL": "its server, if it speaks OpenAI's dialect",
    "CTXMGR_API_KEY": "its key, for such a server",
    "CTXMGR_ALLOW_COMMANDS": "`1` lets probes of a goal run commands, `0` forbids it whatever a file says",
    "CTXMGR_LIVE": "`off` silences the hook of a client for one run",
    "CTXMGR_MCP_TOKEN": "the token that clients of `ctxmgr mcp --http` must send",
    "CTXMGR_DEBUG": "`1` shows the trace of an internal fault",
    "NO_COLOR, FORCE_COLOR, COLUMNS": "as everywhere",
}


def settings_page() -> str:
    """Return the page of all settings, from the table that decides what a file may hold."""
    about = _attributes(DetectSettings.__doc__ or "")
    thresholds = [f"| `{name}` | {default} | {about[name]} |" for name, default in _defaults()]
    rows = [
        f"| `{name}` | {_cell(setting.about)} | {' '.join(f'`{word}`' for word in (setting.option, setting.variable) if word)} "
        f"| {_MAY[setting.project]} |"
        for name, setting in SETTINGS.items()
    ]
    return f"""\
# Settings

Settings are read from your own file, `~/.config/ctxmgr/config.toml` (`$XDG_CONFIG_HOME`), and from the project's:
`ctxmgr.toml`, or `[tool.ctxmgr]` of `pyproject.toml`, in the nearest folder upwards. What a command line says comes first,
then the environment, then the project's file, then yours. `ctxmgr doctor` shows what holds here.

A project's file may have been written by somebody else, so it can tune and cannot grant: the last column says what it may
do. What it may not is left out, and you are told. `ctxmgr trust` accepts a project's file as it stands, until it changes.

| setting | sets | on the command line, in the environment | a project may set it |
|---|---|---|---|
{_lines(rows)}

A setting with a dot stands in the table before the dot:

```toml
store = ".ctxmgr/history.db"

[recover]
attempts = 3

[recover.model]
name = "openai:gpt-5.2"
timeout = 60
```

`[recover.model]` takes `name`, `base_url`, `key_variable`, `mode`, `timeout`, `max_tokens` and `max_tool_calls`. How
`[recover.routes]` is written is shown in [Get a run going again](recovery.md), `[live]` in [Inside your agent](live.md).

## Thresholds: `[detect]`

`repeat_rounds = 4`, or for one action `[detect.actions.NAME]`, or for one run `ctxmgr detect --set repeat_rounds=4`.

| setting | default | meaning |
|---|---|---|
{_lines(thresholds)}

## Variables of the environment

| variable | sets |
|---|---|
{_lines(f"| `{name}` | {meaning} |" for name, meaning in _VARIABLES.items())}
"""


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(rows)


def _cell(text: str) -> str:
    return re.sub(r"'([^']+)'", r"`\1`", text).replace("|", "\\|")


def _defaults() -> Iterator[tuple[str, str]]:
    plain = DetectSettings()
    for each in fields(DetectSettings):
        value = getattr(plain, each.name)
        yield each.name, f"{value:g}" if isinstance(value, float) else str(value) if isinstance(value, int) else "none"


def _attributes(doc: str) -> dict[str, str]:
    """Return what a docstring says of each attribute; one that is told within another's text gets the part after its name."""
    part = doc.partition("Attributes:\n")[2].partition("\n\n")[0]
    told: dict[str, str] = {}
    for item in re.split(r"\n(?= {8}\w)", "\n" + part):
        names, _, text = item.strip().partition(": ")
        text = " ".join(text.split()).replace("``", "`").replace("; see `from_table`", "")
        for name in names.split(", "):
            told[name] = re.sub(r" \(design ruling \d+\)", "", text).rstrip(".").replace("|", "\\|")
        for name, more in re.findall(r"[;.] `(\w+)`: ([^;]+)", text):
            told[name] = f"the same as `{names.split(', ')[0]}`: {more}".rstrip(".")
    return told


def exits_page() -> str:
    """Return the page of the exit codes."""
    kinds: dict[int, list[str]] = {}
    for kind, code in _BY_KIND.items():
        kinds.setdefault(code, []).append(f"`{kind}`")
    rows = [f"| {int(code)} | {meaning} | {' '.join(kinds.get(code, []))} |" for code, meaning in MEANINGS.items()]
    return f"""\
# Exit codes

Every command ends with one of these. In JSON the `kind` of an error says it more exactly. `ctxmgr schema exits` prints
the table.

| code | meaning | kinds of errors |
|---|---|---|
{_lines(rows)}

With `check` and `detect`, a part of a log was not read if it is damaged, or if more than 2 % of the records of another agent's
log were not understood (two logs in one file, for example). A torn last line is no such part: it counts as not yet written.

`detect` and `check` end with 10, 11 or 12 when something is stuck, so that a script can branch; `--exit-zero` turns that
off for `detect`, and `--fail-on` of `check` says what counts.

```bash
ctxmgr detect run.jsonl --json > verdict.json
case $? in
  0) echo fine ;;
  10 | 11 | 12) ctxmgr recover run.jsonl --plan --prompt ;;
esac
```
"""


def licences_page() -> str:
    """Return the page of everything that an installation brings, with its licence, from the metadata of what is installed."""
    own = metadata.requires("ctxmgr-cli") or []
    extras = sorted(metadata.metadata("ctxmgr-cli").get_all("Provides-Extra") or [])
    brought = {"": _closure(own, "")}
    left_out: list[str] = []
    for extra in extras:
        try:
            brought[extra] = _closure(own, extra) - brought[""]
        except metadata.PackageNotFoundError:
            left_out.append(extra)
    names = sorted({name for found in brought.values() for name in found})
    by = {name: ", ".join(extra or "always" for extra in brought if name in brought[extra]) for name in names}
    rows = [f"| {name} | {_licence(name)} | {by[name]} |" for name in names]
    providers = " and ".join((", ".join(f"`{each}`" for each in left_out[:-1]), f"`{left_out[-1]}`")) if left_out else ""
    more = f"\nThe extras {providers} bring the package of that provider, which is not listed here.\n" if left_out else ""
    return f"""\
# Licences

ctxmgr is under the Apache License 2.0. An installation brings these packages, each under its own licence. The last column
says which extra brings it.

| package | licence | comes with |
|---|---|---|
{_lines(rows)}
{more}"""


def _closure(requirements: list[str], extra: str) -> set[str]:
    """Return the names of all packages that these requirements bring on Linux.

    Raises:
        PackageNotFoundError: one is not installed here.
    """
    found: set[str] = set()
    waiting = [(requirement, extra) for requirement in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        seen.add(now := waiting.pop())
        requirement = Requirement(now[0])
        if requirement.marker is not None and not _holds(requirement.marker, now[1]):
            continue
        name = canonicalize_name(requirement.name)
        found.add(name)
        needs = metadata.requires(name) or []
        more = [(need, each) for each in ("", *requirement.extras) for need in needs]
        waiting += [each for each in more if each not in seen]
    return found


def _holds(marker: Marker, extra: str) -> bool:
    # One page for all: that of the oldest Python, on Linux.
    return marker.evaluate({
        "extra": extra, "python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux",
        "platform_system": "Linux", "os_name": "posix", "platform_python_implementation": "CPython",
        "implementation_name": "cpython", "platform_machine": "x86_64",
    })  # fmt: skip


def _licence(name: str) -> str:
    if name in _BY_FILE:
        return _BY_FILE[name]
    told = metadata.metadata(name)
    named = {key: told[key] for key in ("License-Expression", "License") if key in told}
    classified = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or [] if each.startswith("License ::")]
    short = named.get("License", "")
    words = named.get("License-Expression") or short.strip().partition("\n")[0][:40]
    words = words or ", ".join(each.removesuffix(" License") for each in classified if each != "OSI Approved")
    if not words:
        raise LookupError(f"{name} does not say its licence: read it, and enter it into _BY_FILE")
    return words


_BY_FILE = {"pysqlite3": "zlib", "python-dateutil": "Apache-2.0 OR BSD-3-Clause"}
"""Packages whose metadata does not say it, by the text of their licence."""

_DRAWING = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>What ctxmgr detect prints about a run that goes in circles</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich draws it, but with the fonts of the system: a picture that loads nothing."""

_SHOWN = ("ctxmgr detect run.jsonl", 20)
"""The command of the picture, and the lines of its output that are shown."""


def picture() -> str:
    """Return the picture of the README: what the program prints on the recorded run, in colour."""
    command, lines = _SHOWN
    output = terminal_output(command).splitlines()[:lines]
    console = Console(
        width=82, record=True, file=StringIO(), force_terminal=True, color_system="standard", legacy_windows=False
    )
    console.print(Text.assemble(("$ ", "dim"), shlex.join(shlex.split(command))))
    for line in output:
        console.print(Text.from_ansi(line), overflow="crop", no_wrap=True)
    return console.export_svg(title=command, theme=MONOKAI, code_format=_DRAWING, unique_id="ctxmgr")


PAGES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "docs" / "exit-codes.md": exits_page,
    ROOT / "docs" / "licences.md": licences_page,
    ROOT / "docs" / "assets" / "detect.svg": picture,
}
"""Each file that is made, and what makes it."""


def renew() -> None:
    """Write all files as they would be now."""
    for path, make in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), "utf-8")


if __name__ == "__main__":
    renew()
