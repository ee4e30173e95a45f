"""Tell a person's last words, which ask for nothing, from words that wait for the agent."""

from __future__ import annotations

import re

from ctxmgr.detect.text.vocabulary import word_set
from ctxmgr.text.lazy_pattern import lazy_pattern

_MOST = 500
"""Characters; whoever writes more has something to say."""
_COMMAND = lazy_pattern(r"\s*(?:<command-name>)?/?(?:exit|quit|logout|bye)(?:</command-name>)?[\s.!]*\Z", re.IGNORECASE)
_TOKEN = lazy_pattern(r"#{2,}\s*(?:STOP|END|DONE|TRANSFER|OUT-OF-SCOPE|TERMINATE|EXIT)\s*#{2,}\s*\Z")
"""How a harness that plays the person says that the talk is over."""
_SENTENCE = lazy_pattern(r"[.!;\n\u2014]+")
_WORD = lazy_pattern(r"[a-z]+(?:'[a-z]+)?")
_CLOSING = lazy_pattern(
    r"\b(?:thanks|thank you|thx|cheers|bye|goodbye|good night|take care|that's (?:all|it|everything)|that is all|"
    r"all set|i'm done|we're done|nothing else|no further|appreciate|have a (?:great|good|nice|wonderful|lovely)|you too)\b"
)
_ASKS = word_set(
    "please can could would should shall must need want let lets let's yes yeah yep sure go start continue proceed "
    "resume next then also but however except still instead before after until once when if what which who why where how "
    "fix add make do try run write check test build use change update remove rename create show tell give send find explain "
    "finish implement apply commit push don't another wait"
)


def is_farewell(text: str) -> bool:
    """Whether a person who says this, after the agent has answered, expects nothing more.

    A command that leaves, a harness's closing word, or thanks and goodbyes beside which nothing is asked, ordered or agreed
    to. In doubt it is none: then silence after it is a stall.
    """
    if _COMMAND.match(text) or _TOKEN.search(text):
        return True
    if len(text) > _MOST or "?" in text:
        return False
    said = text.lower().replace("\u2019", "'")
    if _CLOSING.search(said) is None:
        return False
    parts = [part for part in _SENTENCE.split(said) if part.strip()]
    return _CLOSING.search(parts[-1]) is not None and not any(
        word in _ASKS for part in parts for word in _WORD.findall(_CLOSING.sub(" ", part))
    )
