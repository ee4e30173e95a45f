"""Check artifact names, and map each to a path that no other name has on any file system."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence

from ctxmgr.access.patterns import check_owner, is_unnameable, quoted
from ctxmgr.errors import InvalidInput
from ctxmgr.log import codec
from ctxmgr.text.lazy_pattern import lazy_pattern

MAX_NAME = 255
"""Longest name of an artifact, in bytes of UTF-8, its slashes included."""

_HINT = f"use 1 to {MAX_NAME} printable bytes, e.g. architecture.yaml or src/main.py"
_MAX_PART = 255  # bytes of one part of a path, on nearly every file system
_PLAIN = lazy_pattern(r"[A-Za-z0-9_+=@,()\[\]{}!#$&'^`-][A-Za-z0-9_+=@,()\[\]{}!#$&'^` .-]*")
_ALL_PLAIN = lazy_pattern(
    r"(?:(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])[ .\n])[a-z0-9_+=@,()\[\]{}!#$&'^`-](?:[a-z0-9_+=@,()\[\]{}!#$&'^` .-]*"
    r"[a-z0-9_+=@,()\[\]{}!#$&'^`-])?+\n)+",
    re.IGNORECASE | re.ASCII,
)
_UNSAFE = frozenset('%~\\:*?"<>|/')
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # what a listing would not show as it is
_DEVICE = lazy_pattern(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=[ .]|$)", re.IGNORECASE)


def check_names(agent: str, name: str) -> None:
    """Refuse an owner or a name that no artifact can have.

    Raises:
        InvalidInput: empty, too long, with control characters or half a character, absolute, with an empty part, ``.`` or
            ``..``, or with a secret of a known shape in it.
    """
    check_owner(agent)
    fault = _fault(name)
    if fault is not None:
        raise InvalidInput(f"artifact name {quoted(name)} {fault}", _HINT)
    line = codec.encode({"agent": agent, "name": name})
    from ctxmgr.log.mask_prefilter import mask  # which a reader has no need of

    if mask(line) != line:  # it would be masked wherever it is recorded, and then mean another artifact
        raise InvalidInput("the artifact's owner or name looks like a secret", "names are shown everywhere: take another one")


def _fault(name: str) -> str | None:
    if not name:
        return "is empty"
    if is_unnameable(name):
        return "holds a control character, a line break or half a character"
    if len(name) > MAX_NAME or len(name.encode("utf-8")) > MAX_NAME:
        return f"is longer than {MAX_NAME} bytes"
    if os.sep != "/" and os.sep in name:
        return f"holds {os.sep!r}, which parts folders here"
    parts = name.split("/")
    if not parts[0]:
        return "is absolute"
    if "" in parts:
        return "has an empty part"
    if "." in parts or ".." in parts:
        return "has a part that means a folder, '.' or '..'"
    return None


def view_paths(named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the path below a version's folder of each (owner, name).

    Most are ``owner/name`` as they are. What file systems treat specially is percent-encoded. Of several that a file system
    could take for the same (another case, another form of Unicode, a file beside a folder of its name) each gets ``~`` and
    digits of its hash, so all differ; the same artifacts get the same paths on every machine.
    """
    by_owner: dict[str, list[str]] = {}
    for owner, name in named:
        by_owner.setdefault(owner, []).append(name)
    folders = owner_paths(by_owner)
    return {
        (owner, name): f"{folders[owner]}/{path}"
        for owner, names in by_owner.items()
        for name, path in name_paths(names).items()
    }


def owner_paths(owners: Iterable[str]) -> dict[str, str]:
    """Return the folder of each owner, told apart among these."""
    escaped = {owner: _escaped(owner) for owner in owners}
    groups: dict[str, list[str]] = {}
    for owner, path in escaped.items():
        groups.setdefault(_folded(path), []).append(owner)
    return {
        owner: _marked(escaped[owner], owner, alike) if len(alike) > 1 else escaped[owner]
        for alike in groups.values()
        for owner in alike
    }


def name_paths(names: Sequence[str]) -> dict[str, str]:
    """Return the path of each name below its owner's folder, told apart among these."""
    joined = "\n".join(names) + "\n"
    if (
        len(joined) < _MAX_PART * len(names)
        and joined.count("\n") == len(names)
        and _ALL_PLAIN.fullmatch(joined)
        and len(set(joined.lower().split("\n"))) == len(names) + 1
        and max(map(len, names)) <= _MAX_PART
    ):
        return {name: name for name in names}  # by far the most; one look at all costs less than one at each
    paths = {name: "/".join(map(_escaped, name.split("/"))) for name in names}
    groups: dict[str, list[str]] = {}
    folders: set[str] = set()
    for name, path in paths.items():
        folded = _folded(path)
        groups.setdefault(folded, []).append(name)
        end = -1
        while (end := folded.find("/", end + 1)) >= 0:
            folders.add(folded[:end])
    return {
        name: paths[name] if len(alike) == 1 and folded not in folders else _marked_last(paths[name], name, alike)
        for folded, alike in groups.items()
        for name in alike
    }


def _marked_last(path: str, name: str, rivals: list[str]) -> str:
    head, slash, last = path.rpartition("/")
    return f"{head}{slash}{_marked(last, name, rivals)}"


def _marked(part: str, name: str, rivals: list[str]) -> str:
    """Return the part with ``~`` and as many digits of the name's hash as tell it from its rivals."""
    own = _digest(name)
    alike = any(other != name and _digest(other)[:8] == own[:8] for other in rivals)
    digits = 64 if alike or len(part.encode("utf-8")) > _MAX_PART - 9 else 8
    return f"{_cut(part, _MAX_PART - digits - 1)}~{own[:digits]}"


def _escaped(part: str) -> str:
    """Return one part of a path with everything percent-encoded that some file system treats specially."""
    if not part:
        return "%"  # which no other part is
    if _PLAIN.fullmatch(part) and part[-1] not in " ." and len(part) <= _MAX_PART and not _DEVICE.match(part):
        return part
    last = len(part.rstrip(" .")) - 1
    device = _DEVICE.match(part) is not None
    out = "".join(
        _percent(letter) if _is_odd(letter) or place > last or (place == 0 and (device or letter == ".")) else letter
        for place, letter in enumerate(part)
    )
    if len(out.encode("utf-8")) > _MAX_PART:
        return f"{_cut(out, _MAX_PART - 18)}~{_digest(part)[:16]}~"
    return out


def _is_odd(letter: str) -> bool:
    return letter in _UNSAFE or (not letter.isalnum() and unicodedata.category(letter) in _HIDDEN)


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _cut(part: str, most: int) -> str:
    """Return at most so many bytes of the start of a text, whole characters and whole escapes."""
    if len(part.encode("utf-8")) <= most:
        return part
    kept = part.encode("utf-8")[:most].decode("utf-8", "ignore")
    return re.sub(r"%[0-9A-F]?$", "", kept).rstrip(" .")


def _folded(path: str) -> str:
    """Return what a file system that knows neither case nor forms of Unicode compares."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", path).casefold())


def _digest(name: str) -> str:
    return codec.digest(name.encode("utf-8", "surrogatepass"))
