"""Write reports as HTML: one file that needs no network and no script."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import Conflict, StorageFailed
from ctxmgr.paths import open_regular, replace_file

if TYPE_CHECKING:
    from jinja2 import Environment

    from ctxmgr.cli.report.document import SessionReport

_HEAD = b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="ctxmgr'
"""How a page of ours begins."""

_INDEX = "index.html"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ctxmgr.cli.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_visible,
    )  # fmt: skip
    return environment


def _visible(value: Any) -> Any:
    """Let no recorded character hide or turn the text around; markup of the template itself passes."""
    return safe(value, keep_lines=True) if type(value) is str else value


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet, and its hash as a content security policy names it."""
    text = files("ctxmgr.cli.report").joinpath("report.css").read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).digest()
    return text, f"sha256-{base64.b64encode(digest).decode()}"


def session_page(report: SessionReport, *, index: str = "") -> str:
    """Return the page of one session; ``index`` links back to the page of all of them."""
    return _page("session.html", report=report, index=index)


def index_page(reports: Sequence[tuple[str, SessionReport]]) -> str:
    """Return the page that lists (file name, report) of several sessions, the stuck ones first."""
    ordered = sorted(reports, key=lambda each: each[1].verdict in ("healthy", "warn"))
    return _page("index.html", reports=ordered)


def _page(name: str, **values: Any) -> str:
    from markupsafe import Markup

    from ctxmgr import __version__

    style, digest = _style()
    return _environment().get_template(name).render(style=Markup(style), digest=digest, version=__version__, **values)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all; one that was written before is replaced, another file never.

    Raises:
        Conflict: something else stands there.
        StorageFailed: it can't be written.
    """
    try:
        if os.path.lexists(path):
            with open(open_regular(path, follow=False), "rb") as stream:
                if stream.read(len(_HEAD)) != _HEAD:
                    raise Conflict(f"{path} exists already and is no report", "name another file: nothing else is replaced")
        replace_file(path, text.encode())
    except OSError as error:
        raise StorageFailed(f"can't write {path}: {error.strerror}", "choose another place") from None


class PageFolder:
    """A folder of pages, one for each session, and an index that leads to them.

    Raises:
        StorageFailed: the folder can't be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: list[tuple[Path, SessionReport]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed(f"can't make {folder}: {error.strerror}", "choose another place") from None

    def add(self, report: SessionReport, log: str = "") -> None:
        """Write the page of a session; ``log`` keeps sessions of one name in several logs apart."""
        path = self.folder / _file_name(report.session, log)
        write_page(path, session_page(report, index=_INDEX))
        report.rows.clear()  # the index needs none, and all sessions together may be long
        self.pages.append((path, report))

    def finish(self) -> Path:
        """Write the index and return its path."""
        write_page(index := self.folder / _INDEX, index_page([(path.name, report) for path, report in self.pages]))
        return index


def _file_name(session: str, log: str) -> str:
    """Return a name for a session's page: what is readable of its id, and a digest that keeps it apart from others."""
    plain = _ODD.sub("-", f"{Path(log).stem[:30]}-{session}").strip("-.")[:60]
    digest = hashlib.sha256(f"{log}\0{session}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain or 'session'}-{digest}.html"
