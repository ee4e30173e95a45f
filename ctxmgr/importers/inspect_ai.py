"""Inspect: a log as a JSON document, or as a ZIP archive (``.eval``) with a header and one file per sample."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from ctxmgr.importers.base import Coverage, JsonImporter, Log
from ctxmgr.importers.chat import content_words, read_message, speak
from ctxmgr.importers.log_files import ZSTD_REMEDY, open_plain, read_values
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text
from ctxmgr.log.foreign_jsonl import Line, Report

_ZSTD = 93  # compression method in a ZIP archive (APPNOTE.TXT, 4.4.5)
_LOCAL_HEADER = 30  # bytes before the file name (APPNOTE.TXT, 4.3.7)
_MAX_BYTES = 256 * 1024 * 1024
_ATTACHMENT = "attachment://"
_MAX_DEPTH = 20


def _proves(value: dict[str, Any]) -> bool:
    header = mapping(value.get("eval"))
    return "task" in header and ("run_id" in header or "eval_id" in header) and ("plan" in value or "status" in value)


def _is_archive(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and b"_journal/start.json" in head[:4096]


class _Samples:
    """Reads the samples of an evaluation, each as its own session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._eval: dict[str, Any] = {}

    def read(self, value: dict[str, Any]) -> None:
        self._eval = mapping(value.get("eval")) or self._eval
        samples = [*sequence(value.get("samples")), *([value["sample"]] if "sample" in value else [])]
        for place, sample in enumerate(map(mapping, samples), 1):
            self._sample(sample, place)

    def _sample(self, sample: dict[str, Any], place: int) -> None:
        header = self._eval
        run = text(header.get("eval_id")) or text(header.get("run_id")) or "eval"
        own = text(sample.get("uuid")) or f"{run}-{sample.get('id', place)!s:.80}-{sample.get('epoch', 1)!s:.10}"
        t = self._log.session(own)
        version = mapping(header.get("packages")).get("inspect_ai")
        t.describe(
            version, sample.get("started_at"), task=header.get("task"), model=header.get("model"), sample=sample.get("id")
        )
        attachments = mapping(sample.get("attachments"))
        events = [mapping(event) for event in sequence(sample.get("events"))]
        # If the events of a log contain no call, it has only the conversation.
        if not any(event.get("event") in ("model", "tool") for event in events):
            for number, message in enumerate(map(mapping, sequence(sample.get("messages"))), 1):
                t.place = number
                read_message(t, _insert_attachments(message, attachments))
        else:
            asked = sample.get("input")
            words = asked if isinstance(asked, str) else "\n".join(
                content_words(mapping(item).get("content")) for item in sequence(asked) if mapping(item).get("role") == "user"
            )  # fmt: skip
            t.place = "input"
            speak(t, str(_insert_attachments(words, attachments)), sample.get("started_at"), None)
            self._events(t, events, attachments)
        if error := mapping(sample.get("error")):
            t.place = "error"
            t.failure(error.get("message"), sample.get("completed_at"), reason="sampleFailed")

    def _events(self, root: Transcript, events: Sequence[dict[str, Any]], kept: Mapping[str, Any]) -> None:
        """Add the events in their order. The span of an agent inside another agent's span belongs to a sub-agent."""
        above: dict[str, str] = {}
        agents: dict[str, str] = {}
        for place, event in enumerate(_flatten_events(events), 1):
            kind, span = text(event.get("event")), text(event.get("id")) or ""
            self._log.count.records += 1
            if kind == "span_begin":
                above[span] = text(event.get("parent_id")) or ""
                if event.get("type") == "agent":
                    agents[span] = text(event.get("name")) or "agent"
                continue
            t = self._part(root, text(event.get("span_id")) or "", above, agents)
            t.place = text(event.get("uuid")) or place
            _read_event(t, kind, event, kept)

    def _part(self, root: Transcript, span: str, above: Mapping[str, str], agents: Mapping[str, str]) -> Transcript:
        inside: list[str] = []
        seen: set[str] = set()
        while span and span not in seen:
            seen.add(span)
            if span in agents:
                inside.append(span)
            span = above.get(span, "")
        # The outermost agent is the solver, which is the main agent of the session.
        if len(inside) < 2:
            return root
        name = f"{agents[inside[0]]}-{inside[0][:8]}"
        return self._log.session(root.session, agent=name, part=f"{root.session}/{inside[0]}", parent="")


def _flatten_events(events: Sequence[dict[str, Any]], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the events in their order. Events that older versions nest in a tool event become a span of the tool's agent."""
    for event in events:
        within = [mapping(item) for item in sequence(event.get("events"))] if depth < _MAX_DEPTH else []
        if not any(item.get("event") in ("model", "tool") for item in within):
            yield event
            continue
        own = text(event.get("uuid")) or str(event.get("id"))
        # The call comes before the events of its agent, and the result after them, as in newer versions.
        yield {**event, "result": None, "pending": True}
        for span, above in ((own, event.get("span_id")), (f"{own}.agent", own)):
            name = event.get("function") or event.get("name")
            yield {"event": "span_begin", "type": "agent", "id": span, "parent_id": above, "name": name}
        yield from ({"span_id": f"{own}.agent", **item} for item in _flatten_events(within, depth + 1))
        yield event


def _read_event(t: Transcript, kind: str | None, event: dict[str, Any], kept: Mapping[str, Any]) -> None:
    at = event.get("timestamp")
    if kind == "model":
        _read_response(t, event, kept)
    elif kind == "tool":
        _read_call(t, event, kept)
    elif kind == "error":
        t.failure(mapping(event.get("error")).get("message"), at)
    elif kind == "interrupt":
        t.event("interrupt", {"text": text(event.get("source")) or "interrupted"}, at)
    elif kind == "compaction":
        t.event("compaction", {"preTokens": event.get("tokens_before"), "postTokens": event.get("tokens_after")}, at)
    elif kind == "sample_limit":
        t.failure(event.get("message"), at, reason=text(event.get("type")) or "limit")


def _read_response(t: Transcript, event: dict[str, Any], kept: Mapping[str, Any]) -> None:
    at = event.get("completed") or event.get("timestamp")
    output = mapping(event.get("output"))
    t.step = f"{t.part}:{t.place}"
    # A model may return several answers at once. The solver continues with the first.
    for choice in sequence(output.get("choices"))[:1]:
        message = mapping(_insert_attachments(mapping(choice).get("message"), kept))
        read_message(t, {**message, "role": "assistant", "id": None}, at, None, response=t.place)
    used = mapping(output.get("usage"))
    t.usage(
        at, t.place, event.get("model"), inputTokens=used.get("input_tokens"), outputTokens=used.get("output_tokens"),
        cacheReadTokens=used.get("input_tokens_cache_read"), reasoningTokens=used.get("reasoning_tokens"),
    )  # fmt: skip
    if event.get("error"):
        t.failure(event.get("error"), at, reason="apiError")


def _read_call(t: Transcript, event: dict[str, Any], kept: Mapping[str, Any]) -> None:
    name = event.get("id")
    t.call(name, event.get("function"), _insert_attachments(event.get("arguments"), kept), event.get("timestamp"))
    error = mapping(event.get("error"))
    # Written while the tool runs. If a log ends like this, the evaluation hung or was killed.
    if event.get("pending") is True or ("result" not in event and not error):
        return
    # Inspect's approvers refuse a call before it runs.
    status = "denied" if error.get("type") == "approval" else "error" if error or event.get("failed") is True else "ok"
    result = _insert_attachments(event.get("result"), kept)
    t.result(name, result, event.get("completed"), status=status, error=error.get("message"))


def _insert_attachments(value: object, kept: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value with the long texts that the log stores separately."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return kept.get(value[len(_ATTACHMENT) :], value)
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {name: _insert_attachments(item, kept, depth + 1) for name, item in cast("dict[str, Any]", value).items()}
    if depth < _MAX_DEPTH and isinstance(value, list):
        return [_insert_attachments(item, kept, depth + 1) for item in cast("list[Any]", value)]
    return value


def _values(path: Path, lists: Sequence[str], report: Report) -> Iterator[Line]:
    """Yield the document, or the header and the samples of an archive.

    Raises:
        OSError: the file can't be read.
    """
    with open_plain(path) as stream:
        if not stream.read(4).startswith(b"PK"):
            yield from read_values(path, lists, report)
            return
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, ValueError, struct.error, EOFError) as error:
            report(0, path.stat().st_size, f"damaged archive: {error}")
            return
        found = sorted(archive.infolist(), key=lambda info: info.filename)
        # The header is written at the end. For a running evaluation, only the start in its journal exists.
        heads = [info for info in found if info.filename in ("header.json", "_journal/start.json")]
        samples = [info for info in found if info.filename.startswith("samples/") and info.filename.endswith(".json")]
        # ``header.json`` sorts after ``_journal/start.json``, so the last one has more information.
        for number, info in enumerate([*heads[-1:], *samples], 1):
            value = _member(stream, info, report)
            if value is not None:
                yield Line(number, {"sample": value} if info in samples else value)


def _member(stream: IO[bytes], info: zipfile.ZipInfo, report: Report) -> dict[str, Any] | None:
    """Return a file of an archive. The bytes are decompressed here, because the standard library does not support zstd."""
    try:
        stream.seek(info.header_offset)
        names, extra = struct.unpack("<HH", stream.read(_LOCAL_HEADER)[26:30])
        stream.seek(info.header_offset + _LOCAL_HEADER + names + extra)
        packed = stream.read(min(info.compress_size, _MAX_BYTES))
        return mapping(json.loads(_uncompress(info.compress_type, packed), parse_constant=str))
    except ImportError:
        report(info.header_offset, info.compress_size, ZSTD_REMEDY)
    except (ValueError, struct.error, RecursionError, OverflowError, zlib.error) as error:
        report(info.header_offset, info.compress_size, f"unreadable file in the archive: {error}")
    return None


def _uncompress(method: int, packed: bytes) -> bytes:
    """Return the decompressed bytes, up to a limit.

    Raises:
        ValueError, zlib.error: the data is damaged, larger than the limit, or compressed by another method.
        ImportError: the data is compressed with zstd, and the module ``zstandard`` is missing.
    """
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        reader = zlib.decompressobj(-15)  # a raw stream, because archives omit the header of zlib
        found = reader.decompress(packed, _MAX_BYTES)
        if reader.unconsumed_tail:
            raise ValueError("larger than the limit")
        return found
    if method != _ZSTD:
        raise ValueError(f"compressed by method {method}")
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed, read_across_frames=True) as stream:
            return stream.read(_MAX_BYTES)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


INSPECT = JsonImporter(
    name="inspect",
    title="Inspect",
    proves=_proves,
    reader=_Samples,
    coverage=Coverage(),
    lists=("samples",),
    marked=_is_archive,
    values=_values,
)
