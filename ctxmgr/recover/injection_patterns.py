"""Match the patterns of text that gives orders to an agent.

A pattern is written in words: a blank stands for whatever may part two words (blanks, markup, the underscores of a file
name), «name» for a list of words. All repeats are bounded, so that a search costs linear time on any text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ctxmgr.text.lazy_pattern import lazy_pattern

IGNORES = "tells the reader to ignore its instructions"
RENEWS = "gives the reader new instructions"
RECASTS = "tells the reader to be someone else"
HANDS_OVER = "orders a hand-over to an agent"
HIDES = "tells the reader to keep something from the user"
LEAKS = "asks for secrets to be sent"
COMMANDS = "gives orders to the agent that reads it"
IMITATES = "imitates a system message"
CLOSES = "closes a fence or a chat template"


class Order(NamedTuple):
    """One pattern: its name, why a hit is suspicious, the literals that every hit has, and the expression.

    ``anchors`` are groups of literals: a text with none of one group holds no hit. ``led`` patterns count only where a
    sentence begins or an order is given ("you must now ..."). ``exact`` ones look at signs and case, so they are tried on
    the text as it was written; the others on its words.
    """

    name: str
    reason: str
    anchors: tuple[tuple[str, ...], ...]
    words: str
    led: bool = False
    exact: bool = False


FEW = r"(?: [\w'/@~-]{1,24}){0,6}?"
NOBODY = (
    r"(?!(?:(?:a|an|the|your|our) )?(?:human|person|people|customer|support|operator|user|caller|client|someone|staff|valid|"
    r"different|another|available|appropriate|what|correct|right|proper|relevant|responsible|representative|live|main|next|event|kernel|parent|function|server|process|"
    r"thread|shell|scheduler|interpreter|library|application|program|host|default|handler|callback|it|them|me|you|us)\b)"
)
_NOUNS = (
    "agent|bot|merger|reviewer|planner|router|coder|deployer|executor|worker|manager|approver|publisher|janitor|merge|deploy|"
    "attacker|exfil\\w{0,10}"
)
_WORDS = {
    "any": "all|any|every|everything|each|the|your|you|my|our|its|these|those|this|that|of|to|what|please|and|other|"
    "completely|entirely|just|whatever|such|from|even|also|first|now|may|have|been|were|so|far|with|which|in",
    "earlier": "previous(?:ly)?|prior|preceding|above|earlier|former|foregoing|existing|original|initial|past|before|"
    "system|developer|operator|hidden|safety|given|old|current|received|said|told|upstream",
    "orders": "instructions?|prompts?|directions|directives?|guidelines?|orders|rules|guardrails?|safeguards?|policy|"
    "policies|programming|training|restrictions|constraints",
    "firm": "instructions?|prompts?|directives?|guidelines|guardrails?|safeguards?|programming",
    "said": "context|messages?|conversations?|commands|text|tasks?|requests?|history|content|goals?|objectives?|entries|"
    "notes|plans?",
    "skip": "ignor(?:e|ing)|disregard(?:ing)?|forget|unlearn|pay no (?:attention|heed) to|turn a blind eye to|"
    "(?:do not|don'?t|stop|no longer|quit|cease) (?:follow|obey|heed|comply with|adhere to|listen to|honou?r)(?:ing)?",
    "lift": "overrid(?:e|ing)|overrule|bypass|discard|neglect|drop|cancel|(?:set|put|throw) (?:aside|away)|abandon|erase|"
    "delete",
    "reader": r"a\.?i\.?(?: (?:agent|assistant|model|system)s?)?|(?:coding|autonomous|receiving|reading|next|current) "
    r"(?:agent|assistant)s?|agents?|assistants?|llms?|(?:large )?language models?|context manager|chat ?bots?|"
    r"claude|chatgpt|gpt(?:-?\d)?|copilot|codex|gemini|orchestrator|router",
    "agent": rf"{NOBODY}(?:the |an? )?{NOBODY}(?:agent [\w.]{{1,40}}|(?:\w{{1,20}} ){{0,2}}?\w{{0,20}}?(?:{_NOUNS})\b)",
    "secret": r"(?:api |access |secret |private |ssh |auth |encryption |signing |deploy )?keys?|(?:\w{1,12} )?tokens?|"
    r"secrets?|passwords?|passphrases?|credentials?|\.?env file|\.env|id_rsa|/etc/(?:passwd|shadow)|"
    r"env(?:ironment)? var(?:iable)?s?|environment|cookies?|system prompt|(?:conversation|session) history",
    "whither": r"https?:|ftp:|www\.|[\w+.]{1,30}@|me\b|us\b|attacker|evil|an? external|the following|"
    r"th(?:is|e) (?:url|address|server|endpoint|webhook|link|e-?mail|host|attacker)|\d{1,3}\.\d{1,3}\.\d|webhook|pastebin|"
    r"\w{1,40}\.(?:com|net|io|org|ru|example|xyz|dev|site|test|invalid)\b",
    "harm": "ignore|disregard|forget|stop|abandon|rout(?:e|ing)|hand (?:over|off|control|this)|transfer|send|reveal|approve|"
    "mark (?:this|the|it|all)|report (?:success|that|this)|delete|drop|switch|choose|select|obey|comply|immediately|"
    "instead|upload|do not (?:report|tell|mention|check|review|continue|run|use|call|trust)|from now on|"
    "without (?:asking|checking|review)|override|proceed to|exfiltrate|leak|wipe|must now|new instructions?",
    "authority": "system|admin\\w{0,10}|operator|developers?|root|anthropic|openai|google|platform|"
    "security team|context manager|orchestrator|owner|supervisor|user",
    "person": "(?:end )?users?|humans?|operators?|owners?|developers?|customers?|anyone|anybody|people|supervisors?|"
    "maintainers?",
}
_LEADS = lazy_pattern(
    r"(?:[.!?:;,>*#\])\"(\[-]\s{0,3}|\n\s{0,4}[*_#<( \[]{0,4}|\b(?:must|should|shall|now|please|immediately|always|instead|"
    r"need to|have to|required to|then|and|will|just|only)\s)$"
)
_LEAD = 16


def order(name: str, reason: str, anchors: str, words: str) -> Order:
    """Return a pattern in words; ``anchors`` as "one|or another&and one|of these"."""
    return Order(name, reason, _groups(anchors), words)


def led(name: str, reason: str, anchors: str, words: str) -> Order:
    """Return a pattern in words that counts only at the beginning of a sentence or after "must", "now" and the like."""
    return Order(name, reason, _groups(anchors), words, led=True)


def mark(name: str, reason: str, anchors: str, expression: str) -> Order:
    """Return a pattern of signs and case; blanks in it are blanks."""
    return Order(name, reason, _groups(anchors), expression, exact=True)


def led_mark(name: str, reason: str, anchors: str, expression: str) -> Order:
    """Return a pattern of signs and case that counts only at the beginning of a sentence or a line."""
    return Order(name, reason, _groups(anchors), expression, led=True, exact=True)


def _groups(anchors: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.split("|")) for group in anchors.split("&"))


def found(order: Order, text: str, *, loose: bool = False) -> bool:
    """Return whether a text holds what the pattern describes; ``loose``: though nothing parts the words.

    A group named ``tag`` is the name of a closing tag: it counts only where more such tags were closed than opened.
    """
    for hit in pattern(order, loose).finditer(text):
        tag = hit.groupdict().get("tag")
        if tag is not None and text.count(f"<{tag}", 0, hit.start()) > text.count(f"</{tag}", 0, hit.start()):
            continue
        before = text[max(0, hit.start() - _LEAD) : hit.start()]
        if not order.led or loose or not before or _LEADS.search(before):
            return True
    return False


@cache
def pattern(order: Order, loose: bool = False) -> re.Pattern[str]:
    """Return the expression of a pattern. Few are ever needed, and all of them take long to compile."""
    words = order.words
    while "«" in words:
        words = re.sub("«(\\w+)»", lambda found: f"(?:{_WORDS[found[1]]})", words)
    if not order.exact:
        words = words.replace(" ", "[ ,_\n]?" if loose else "[ ,_\n]")
    return lazy_pattern(words, re.DOTALL)
