"""Find the lines of an output that say why, and the words of an error that our own sentences may repeat.

Lines are the error itself, its reason, and the remedy that the tool names. All tools state a reason in few forms: "must be",
"expected A, got B", "because", "hint:", "did you mean". An output may contain orders. A run of usual words of errors, with
names between them, is none, so our sentences show only that (`quotable_words`), what the error offers, and members of a
structured error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.errors.table import error_words
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.files import FOREIGN
from ctxmgr.diagnose.evidence.items import find_json
from ctxmgr.diagnose.evidence.texts import ORDERS, code, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_TELLING = lazy_pattern(
    r"error|exception|fail|fatal|denied|refused|cannot|can't|not found|missing|invalid|expected|unable|rejected|conflict"
    r"|could not|couldn't|undefined|unresolved|no such|does not exist|doesn't|mismatch|timed? ?out|unknown",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(
    r"(?:E\s+|- [A-Z]{1,3}\d{2,4} )?(?:[\w.]+(?:Error|Exception|Fault)\b|error(?:\[\w+\])?:|fatal:|panic:)", re.IGNORECASE
)
# gcc's `a.c:3:4: error`, rustc's `error[E0308]: `
_PLACED = lazy_pattern(r"^\S{1,160}:\d{1,6}:(?:\d{1,5}:)? (?:fatal )?error\b|^error(?:\[\w+\])?: ", re.IGNORECASE)
_REASON = lazy_pattern(
    r"\b(?:because|must(?: not)?|should(?: not)?|only|requires?|required|needs?|expected|expects|instead|already|until|since"
    r"|allowed|permitted|supported|ignored|protected|locked|held by|owned by|used by|in use|reserved|policy|deprecated|removed"
    r"|renamed|moved|has been|does not match|differs?|mismatch|exceeds?|limit|at least|at most|older|newer|outdated|stale"
    r"|expired|disabled|read-only|undefined|unresolved|nothing|empty|wants|given|got|found|not yet"
    r"|unless|up to date|unchanged|nothing to)\b",
    re.IGNORECASE,
)
_DENIES = lazy_pattern(r"\b(?:not|no|cannot|without|invalid|missing|denied|forbidden|unknown)\b|n't\b", re.IGNORECASE)
_ADVICE = lazy_pattern(
    r"^\s{0,8}(?:remote: )?(?:hint|help|tip|note|try|fix|suggestion|to fix|see|= (?:help|note))\b\s?[:-]?"
    r"|\b(?:did you mean|(?:maybe|perhaps) you meant|try|use|run|consider|please|instead|add|set|pass|install|make sure|you can"
    r"|you (?:need|may|might|must|should))\b",
    re.IGNORECASE,
)
_ADVISES = lazy_pattern(
    r"^\s{0,8}(?:hint|help|tip|try|fix|suggestion|to fix)\b\s?[:-]?|(?<![\w/.-])(?:use|try|run|set|pass|add|must be|should be)"
    r" [`'\"-]{0,2}\w|\b(?:try|please|first|re-?(?:run|fetch|read|load)) \w+ing\b",
    re.IGNORECASE,
)
_SUMMARY = lazy_pattern(
    r"^(?:found \d+ |=*\s?\d+ (?:failed|passed|errors?)\b|(?:g?make|ninja)(?:\[\d+\])?: \*\*\*|\[?exit(?: code"
    r"| status)?[ :]*\d+|node\.js v\d|and |or "
    r"|failed\b[^\n]{0,60}::|.{0,80}\bnote:|traceback|file \"|at (?:async )?[\w.<>]+ ?(?:\[as \w+\] ?)?\("
    r"|at (?:node|file):|\s*\^+\s*$|={4}|-{4}|_{4}"
    r"|npm (?:err!|error) (?:code|a complete log)|a complete log of"
    r"|throw \w+; //|emitted '\w+' event on |errno: -?\d|syscall: '|node:[\w/]+:\d+$"
    r"|(?:code|address): '[^'\n]*',$"
    r"|error: (?:process completed|aborting|failed to push some refs)|collect2: )",
    re.IGNORECASE,
)
"""Lines that only count or repeat the error."""
_LISTED_CODE = lazy_pattern(r"^\d{1,6}[:|]\s{3,}\S")
"""An indented line of a source with its number, as an editor shows it. Its words are the program's, not those of an error."""
_FAILED_BECAUSE = lazy_pattern(r"(?i)(?:failed|error)\b[^\n]{0,200}:: ?\S[^\n]{0,200} - \w")
_DECORATION = lazy_pattern(r"^[│╷╵|>\s]{1,12}|^(?:remote|npm (?:err!|error)|E)(?::|\s)\s*|</?tool_use_error>", re.IGNORECASE)
_ASSERTED = lazy_pattern(r"^(?:assert\b|Expected|Received|[+-] ?(?:expected|actual)|AssertionError:)")
_SPECIFIC = lazy_pattern(r"['\"`‘“][^'\"`]{2,80}['\"`’”]|\w/\w|\w\.\w|\d{2}|\w_\w|\s-{1,2}\w")
_FRAME = lazy_pattern(r"\s*File \"([^\"\n]{1,300})\", line \d+")
_LETTERS = lazy_pattern(r"[^\W\d_]{2}")
_GIVES_REASON = lazy_pattern(r"(?i)\b(?:caused by|because(?: of)?|reasons?|due to)\s?:$")
"""The end of a line below which stands why."""
_FORMS, _MOST_OUTPUT, _MOST_LINE_READ, _CHAIN, _OF_REASON = 6, 8_000, 600, 2, 5


class _Line(NamedTuple):
    """A line of an output, its score for how much it says, and its number."""

    text: str
    score: int
    place: int

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key: greater for a more telling line. Of equal scores, the later line wins, but the first place in a source."""
        return self.score, -self.place if _PLACED.search(self.text) else self.place


def telling_line(evidence: Evidence, step: EntryView) -> str:
    """Return the line of a call's output that says most about its outcome; "" if it printed nothing."""
    return max(_list_lines(evidence, step), key=lambda each: each.rank, default=_Line("", 0, 0)).text


def reasons(evidence: Evidence, steps: Sequence[EntryView], room: int) -> list[str]:
    """Return what calls say about their failure: the most telling lines of the first call, then what other calls add.

    Args:
        evidence: the session.
        steps: the calls; the first one is the main one.
        room: characters of each text; a short output is returned whole.
    """
    texts: list[str] = []
    known: set[str] = set()
    for step in steps[:_FORMS]:
        # From other calls, take only new lines that say something.
        lines = [
            line
            for line in _list_lines(evidence, step)
            if _comparison_key(line.text) not in known and (not texts or line.score > 0)
        ]
        chosen = _choose_lines(lines, room)
        known |= {_comparison_key(line.text) for line in lines}
        if chosen:
            texts.append(" ⏎ ".join(_clip_to_end(line.text, room) for line in chosen))
    return texts


def gives_reason(text: str) -> bool:
    """Whether an output has a line below which stands why: "The conflict is caused by:"."""
    return any(_GIVES_REASON.search(line.rstrip()) for line in text[-_MOST_OUTPUT:].split("\n"))


def _clip_to_end(line: str, room: int) -> str:
    """Return a line; of a long chain of errors its end, because "a: b: c" names the root cause last."""
    end = line[-room + 1 :]
    return f"… {end.partition(' ')[2]}" if len(line) > room and line.count(": ") > _CHAIN else line


def _choose_lines(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Return the most telling lines that fit into ``room``, in their order. The most telling one may be longer."""
    chosen: list[_Line] = []
    for line in sorted(lines, key=lambda each: each.rank, reverse=True):
        used = sum(len(each.text) + 3 for each in chosen)
        # A line that only counts is used only if there is no other.
        if not chosen or (line.score >= 0 and used + len(line.text) <= room):
            chosen.append(line)
    # A part of another line is no news.
    whole = [line for line in chosen if not any(line.text in each.text and each is not line for each in chosen)]
    return sorted(whole, key=lambda each: each.place)


def _list_lines(evidence: Evidence, step: EntryView) -> list[_Line]:
    """Return the distinct lines of an output that have words and are no order."""
    found: dict[str, _Line] = {}
    log = evidence.log_of(step)
    texts = (evidence.text(step) if log is None else log.text)[-_MOST_OUTPUT:].split("\n")
    frames, explains = _find_passed_frames(texts), False
    for place, text in enumerate(texts):
        line = _DECORATION.sub("", text).strip()[:_MOST_LINE_READ]
        # An order in an output is never repeated.
        if place not in frames and _LETTERS.search(line) and not ORDERS.search(text):
            found.setdefault(line, _Line(line, _score_line(line) + (_OF_REASON if explains else 0), place))
        # The lines below "The conflict is caused by:" say why, up to an empty one.
        explains = _GIVES_REASON.search(line) is not None or (explains and bool(line))
    return list(found.values())


def _find_passed_frames(texts: Sequence[str]) -> set[int]:
    """Return the indexes of source lines in tracebacks that only lead to the error: all but the last in an own file."""
    frames = [
        (place + 1, match.group(1)) for place, text in enumerate(texts[:-1])
        # A frame of a built-in has no source line, and the error may follow it.
        if (match := _FRAME.match(text)) and texts[place + 1].startswith("    ")
    ]  # fmt: skip
    own = [place for place, path in frames if not any(part in path for part in (*FOREIGN, "<frozen"))]
    return {place for place, _ in frames if place not in own[-1:]}


def _score_line(line: str) -> int:
    if _LISTED_CODE.match(line):
        return 0
    if _SUMMARY.search(line):
        # "FAILED test_a.py::test_b - AssertionError: ..." says why, and a bare count does not.
        return -1 if _FAILED_BECAUSE.match(line) else -2
    score = (
        3 if _PLACED.search(line) or _ASSERTED.match(line) else 2 if _NAMED.match(line) else 1 if _TELLING.search(line) else 0
    )
    advice = _ADVICE.search(line) is not None
    return (
        score
        + (1 if _REASON.search(line) else 0)
        + (1 if _SPECIFIC.search(line) and score else 0)
        # Advice is handled separately, so the error itself comes first.
        - (1 if advice and score < 2 else 0)
    )


def is_advice(line: str) -> bool:
    """Whether a line is meant to name a remedy."""
    return _ADVISES.search(line) is not None and not _SUMMARY.search(line)


def is_telling(line: str) -> bool:
    """Whether a line says what went wrong, instead of only counting or repeating it."""
    return _score_line(line.strip()) > 0


def states_reason(line: str) -> bool:
    """Whether a line of an error says what is wrong, and not only that something is: "not found", "only 3 are allowed"."""
    return (_REASON.search(line) or _DENIES.search(line)) is not None


def _comparison_key(line: str) -> str:
    return mask_volatile(line, ids=True)


_TOKEN = lazy_pattern(r"\S+")
_CODED = lazy_pattern(r"[\d_./:=@#<>\[\](){}-]|[a-z][A-Z]|^[A-Z]{2,8}$")
_ERROR_NAME = lazy_pattern(r"^\w*(?:Error|Exception|Fault|Warning)$")
_LEAST_WORDS, _MOST_SHOWN, _MOST_READ = 2, 160, 2_000
_SMALL = word_set(
    "a an the this that these those to of in on at for from by with and or is are was were be been has have had do does did it "
    "its as if so but can will here there you your"
)
"""Words of any sentence."""


@cache
def _load_error_words() -> frozenset[str]:
    return frozenset(error_words().split())


def quotable_words(line: str) -> str:
    """Return the longest run of usual words of errors and names in a line, as a quote; "" if there is none.

    One other word within it is left out. More of them could be an order, of which only the names would remain.
    """
    runs: list[list[str]] = [[]]
    gap = 0
    for token in _TOKEN.findall(line[:_MOST_READ]):
        if _is_error_word(token):
            if gap:
                runs.append([])
            runs[-1].append(token)
            gap = 0
        else:
            gap += 1
            if gap == _LEAST_WORDS:
                runs.append([])
    joined: list[list[str]] = []
    for run in runs:
        # Two other words in a row end a run, since more could be an order.
        words = [token for token in run if _strip_punctuation(token).casefold() in _load_error_words()]
        if joined and joined[-1] and len(words) >= _LEAST_WORDS:
            joined[-1] += ["…", *run]
        else:
            joined.append(run)
    best = max(joined, key=len)
    text = " ".join(best)
    # A run of nothing but names, or of nothing but small words, says nothing about the error.
    words = [_strip_punctuation(token).casefold() for token in best]
    named = any(word in _load_error_words() and word not in _SMALL for word in words) or any(
        map(_ERROR_NAME.search, map(_strip_punctuation, best))
    )
    return code(text, _MOST_SHOWN) if len(best) >= _LEAST_WORDS and named else ""


def quotable_lines(lines: Sequence[str]) -> str:
    """Return the lines of an error that may be repeated whole, as a quote; if there are none, their words that may be.

    A line may be repeated whole if it mostly has usual words of errors and names, addresses nobody and asks for nothing.
    """
    fair = [line if _is_quotable(line) else quotable_words(line).strip("`") for line in lines]
    # Two lines may say the same, with other words around it.
    new = [text for place, text in enumerate(fair) if text and not any(text in each for each in fair[:place])]
    return code(joined, _MOST_LINE) if (joined := "; ".join(new)) else ""


def _is_quotable(line: str) -> bool:
    tokens = _TOKEN.findall(line[:_MOST_READ])
    foreign = sum(not _is_error_word(token) for token in tokens)
    # A request to somebody is no statement.
    if ORDERS.search(line) or _ASKS.search(line):
        return False
    return 0 < len(tokens) <= _MOST_TOKENS and foreign <= max(_LEAST_WORDS, _FOREIGN * len(tokens))


_ASKS = lazy_pattern(
    r"\b(?:you (?:must|should|need|can|may|are to|have to)|your (?:task|instructions?|next)|please|ignore|disregard"
    r"|forget|obey|instructions?|approved|execute|sudo|rm|send|upload|email|reveal|print)\b"
    r"|(?:^|[.;:,!] |\band |\bthen |\bto )(?:run|delete|remove|drop|push|install|disable|export|set|use|add|call|open"
    r"|write|edit)\b",
    re.IGNORECASE,
)
"""Words that address somebody."""
_MOST_TOKENS, _FOREIGN, _MOST_LINE = 40, 0.6, 190


def addresses_reader(text: str) -> bool:
    """Whether a text addresses somebody: it asks, orders or allows."""
    return _ASKS.search(text) is not None


def is_error_word(word: str) -> bool:
    """Whether a word is a usual word of errors."""
    return word.casefold() in _load_error_words()


def _strip_punctuation(token: str) -> str:
    return token.strip("`'\"‘’“”,.:;!?()[]{}<>*-│")


def _is_error_word(token: str) -> bool:
    bare = _strip_punctuation(token)
    if not bare or bare.casefold() in _load_error_words() or re.fullmatch(r"\w*(?:Error|Exception|Fault|Warning)", bare):
        return True
    quoted = token.strip(",.:;!?()")[:1] in "`'\"‘“" and token.strip(",.:;!?()")[-1:] in "`'\"’”"
    return (
        # A word in quotes, or one that is written like code, is a name.
        (quoted or _CODED.search(bare) is not None) and plain_name(bare.replace("(", "").replace(")", "")) and "`" not in token
    )


_OFFERED = tuple(
    lazy_pattern(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        r"\b(?:did you mean|(?:maybe|perhaps) you meant)[ :]{1,3}[`'\"]?([\w@./+:-]{2,90})",
        r"\b(?:hint|help|try|run|use|call|install (?:it )?with|to fix[^:\n]{0,60})\b(?: running| with| using)?:?\s{1,6}"
        r"[`'\"]([\w@./ =+:-]{3,90})[`'\"]",
        r"\b(?:call|run|try|use|hint)(?: the following)?:\s{1,8}((?:git|npm|pip|python3?|apt|docker|kubectl|cargo|go|yarn|pnpm)"
        r" [\w@./ =+:-]{3,90})$",
        r"\b(?:use|pass|add|specify|set) (?:the )?(--?[a-z][\w-]{0,30}|[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,40})\b",
        r"\brun:? ((?:aws|gcloud|az|gh|npm|npx|pnpm|yarn|docker|kubectl|git|cargo|pip|poetry|uv|terraform|helm|make"
        r"|go|firebase|heroku"
        r"|fly|vercel|brew|bundle|composer|rustup|pre-commit) [a-z][\w-]*(?: [a-z][\w-]*){0,2}?)(?= (?:with|to|in|for"
        r"|first|and|before"
        r"|again|from|on|then|or|if|using|manually|instead)\b|[.,;:)]?\s*$)",
        r"\bendpoint: ?([\w.-]{4,90})",
        r"\b(?:use|try) [`'\"]?([\w.-]{2,40}(?:\(\))?)[`'\"]? instead",
    )
)
_DULL = word_set(
    "message error code status type ok success detail details stderr stdout exitcode exit_code iserror is_error stack trace "
    "body requestid request_id name title text documentation_url help content description durationms timestamp path method "
    "url date validation waited elapsed took http content-type content_type received exit rc returncode return_code updated "
    "updated_at created created_at modified modified_at at time ts content-length server connection etag via vary"
)
_POINTS = frozenset(("this", "that", "it", "these", "those", "one", "the", "them", "here", "there"))
# An option has no word boundary before it: `git reset --hard`.
_HARM = lazy_pattern(r"\b(?:rm|sudo|curl|wget|sh|bash|eval|chmod|chown|force)\b|(?<![\w-])(?:-f|--no-verify|--hard)\b|\||;|&")
_MOST_DEPTH, _MOST_MEMBERS, _OFFERS_READ, _MOST_PARSED = 4, 4, 6_000, 20_000


def error_details(entry: EntryView, said: str, known_text: str, was_tried: Callable[[str], bool] | None = None) -> str:
    """Return a sentence with members of an error that the call and earlier sentences do not have; "" if there are none."""
    asked = f"{call_input(entry)}\n{known_text}"
    members = [
        f"{code(name, 40)} {code(value, 60)}"
        for name, value in error_members(entry, said)
        if value not in asked and name not in known_text
    ]
    sentences = [f"The answer names {', '.join(members[:_MOST_MEMBERS])}."] if members else []
    offer = next((each for each in list_offers(said) if each not in asked and not (was_tried and was_tried(each))), "")
    if offer:
        sentences.append(f"The error itself names {code(offer, 90)}.")
    return " ".join(sentences)


def list_offers(said: str) -> list[str]:
    """Return the names and calls that an error offers, without any that delete, force or fetch something."""
    text = said[:_OFFERS_READ]
    found = [match.group(1).strip().rstrip(".,:?") for pattern in _OFFERED for match in pattern.finditer(text)]
    return [
        each for each in dict.fromkeys(found)
        # A call that deletes, forces or fetches something is never offered.
        if len(each) > 1 and "://" not in each and "  " not in each and not _HARM.search(each)
        and each.casefold() not in _POINTS
    ]  # fmt: skip


def error_members(entry: EntryView, said: str) -> list[tuple[str, str]]:
    """Return the plain members of a structured error, the outer ones first."""
    waiting: list[tuple[Any, int]] = [(entry.error, 0), (entry.output, 0), (_parse_json(said), 0)]
    found: dict[str, str] = {}
    while waiting:
        item, depth = waiting.pop(0)
        item = _parse_json(item) if isinstance(item, str) else item
        if isinstance(item, list) and depth < _MOST_DEPTH:
            waiting += [(each, depth + 1) for each in cast("list[Any]", item)[:10]]
        if not isinstance(item, dict) or depth >= _MOST_DEPTH:
            continue
        for name, value in list(cast("dict[Any, Any]", item).items())[:20]:
            if isinstance(value, dict | list | str) and not (isinstance(value, str) and plain_name(value.strip('"'))):
                waiting.append((cast("Any", value), depth + 1))
            elif (
                not isinstance(value, bool)
                and value is not None
                # These members say nothing about the failure.
                and str(name).casefold() not in _DULL
                and plain_name(str(name))
            ):
                text = str(value).strip('"')
                if plain_name(text) and len(text) <= 40:
                    found.setdefault(str(name), text)
    return list(found.items())


def _parse_json(text: str) -> Any:
    return next(find_json(text), None) if len(text) <= _MOST_PARSED else None
