"""A server or program refuses the credentials. The record says who named new ones, or that nobody did."""

from __future__ import annotations

import re

from ctxmgr.diagnose.errors.lines import list_offers
from ctxmgr.diagnose.errors.table import any_known_error
from ctxmgr.diagnose.evidence import Evidence, Message, clock
from ctxmgr.diagnose.evidence.messages import forbids
from ctxmgr.diagnose.evidence.texts import (
    blanks_for_underscores,
    code,
    plain_name,
    quote_match,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.notes import find_way_in_note
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "authenticationRefused"

_REFUSED = lazy_pattern(
    r"\b401\b[^\n]{0,60}unauthori[sz]ed|(?:status|http/[\d.]+|error|code|returned error:)\W{0,3}401\b|unauthori[sz]ed"
    r"|unauthenticated|authentication (?:failed|required|error)|bad credentials"
    r"|invalid (?:api[ _-]?key|credentials|token|access token|password)|incorrect (?:api key|password|username)"
    r"|(?:token|session|credentials?|credential)[^\n]{0,16}(?:has |have |is |was )?expired|ExpiredToken|invalid_grant|NOAUTH"
    r"|not logged in|not authenticated|please run: +gh auth login|login required|password authentication failed"
    r"|permission denied \(publickey|could not read (?:username|password)|access token (?:is )?(?:missing|invalid)"
    r"|NeedAuthorization|ENEEDAUTH|E401|\bHTTP[ :]{1,2}401\b|(?:insufficient|missing|lacks?(?: the)?|requires?(?: "
    r"the)?) (?:required )?(?:oauth )?scopes?"
    r"|(?:access )?(?:token|session|credentials?|api[ -]?key|password|cookie|login|refresh token|licen[cs]e key)s?\b[\w ]{0,30}"
    r"\b(?:expired|rotated|revoked|void|no longer (?:valid|accepted)|not (?:valid|recogni[sz]ed|accepted"
    r"|authori[sz]ed)|disabled|rejected|outdated)"
    r"|(?:expired|revoked|rotated|invalid|bad|wrong|stale|missing) (?:access |auth(?:entication|orization)? "
    r"|bearer |session |refresh |api[ -]?)?"
    r"(?:token|credentials?|session|key pair|signature|auth(?:orization)? header|password|secret)\b"
    r"|access denied for user|login failed|sign[- ]?in (?:required|failed)|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|AuthFailure|InvalidClientTokenId"
    r"|no (?:valid )?(?:credentials|auth(?:entication)? token)|must (?:be logged in|log in|authenticate)|could "
    r"not authenticate|auth(?:entication|orization)? (?:is )?(?:required|failed)",
    re.IGNORECASE,
)
_CREDENTIAL = lazy_pattern(
    r"\b(?:tokens?|api[ _-]?keys?|keys?|passwords?|credentials?|secrets?|cert(?:ificate)?s?|kubeconfigs?|log ?in|sign in"
    r"|account|auth\w*"
    r"|\w+_(?:TOKEN|KEY|PASSWORD|SECRET))\b",
    re.IGNORECASE,
)
_WHERE = lazy_pattern(
    r"(?:[~.]?/?(?:[\w.-]{1,60}/){1,8}[\w.-]{1,60}|\$?\b[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,40}\b|(?<![\w.])\.env[\w.]{0,20}"
    r"|\bvault\b|\bkeychain\b|\b1password\b)",
    re.IGNORECASE,
)
_THING = r"(?:tokens?|api[ _-]?keys?|keys?|passwords?|credentials?|secrets?|logins?|cert(?:ificate)?s?|kubeconfigs?|ones?)"
_LIES = lazy_pattern(
    rf"\b{_THING}\b.{{0,60}}\b(?:is|are|lies?|stored|saved|kept|found|moved|now)\b"
    rf"|\b(?:use|take|read|get|load|with)\b.{{0,60}}\b{_THING}\b(?:.{{0,60}}\b(?:from|in|at|under)\b|\s+[~/.$])"
    rf"|\b(?:put|placed|left|saved|stored|copied|dropped|laid)\b.{{0,40}}\b{_THING}\b.{{0,60}}\b(?:in|at|under|into|to)\b\s+`?[~/.$]"
    rf"|\b(?:use|export|set|read)\b.{{0,20}}\$?\b\w+_(?:TOKEN|KEY|PASSWORD|SECRET)\b",
    re.IGNORECASE,
)
_LOGIN = lazy_pattern(
    r"\b(?:log|sign) in (?:with|by|using)\b|\b(?:run|use)\b.{0,40}\blogin\b|\b[a-z]+ (?:\w+ )?login\b", re.IGNORECASE
)
_SENTENCE = lazy_pattern(r"[^.!?\n]{1,400}(?:[.!?](?!\s|$)[^.!?\n]{0,200}){0,6}[.!?]?")
_SCOPE = lazy_pattern(
    r"[\"'](?:required_?|missing_?|needed_?)?(?:scopes?|required|missing"
    r"|needed)[\"']\s?:\s?\[?\s?[\"']([\w.:/-]{2,60})|(?:missing|required|needs?|lacks?|requires?|without|add"
    r"|grant)(?: the| one of| any of)?(?: required)?(?: oauth)? scopes?\W{1,4}([\w.:/-]{2,60})"
    r"|[`'\"]([\w.:/-]{2,60})[`'\"] (?:oauth )?(?:scope|permission|role)\b|(?:needs?|requires?|lacks?)(?: the)? "
    r"([a-z][\w-]{1,30}[:.][\w.:-]{2,40})",
    re.IGNORECASE,
)
_NO_SCOPE = frozenset(
    ["the", "a", "this", "that", "is", "to", "for", "required", "missing", "insufficient", "scope", "scopes", "token", "access"]
)
_LOGS_IN = lazy_pattern(r"\b(?:login|log-in|signin|auth|authenticate|refresh|renew)\b")
_SYNTAX = lazy_pattern(
    r"not well-formed|syntax ?error|parse ?error|invalid token (?:'|\"|at |in line |on line )", re.IGNORECASE
)
_CERTIFICATE = lazy_pattern(r"certificate (?:has expired|problem|verify failed|is not)|CERT_HAS_EXPIRED", re.IGNORECASE)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what is refused, and where the new credentials are."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        match = _REFUSED.search(blanks_for_underscores(said))
        # A refused certificate is no login, and neither is a token in a text that can't be parsed.
        if match is None or _CERTIFICATE.search(said) or _SYNTAX.search(evidence.line(entry, _REFUSED)):
            continue
        line = evidence.line(entry, _REFUSED)
        return _explain_refusal(evidence, entry, line)
    return None


def _explain_refusal(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis:
    expired = "have expired" if re.search("expired", line, re.IGNORECASE) else "are refused"
    cause = f"{evidence.describe_failure(entry, 80)}: the credentials it uses {expired}, {quote_match(_REFUSED, line)}."
    quotes = [evidence.quote(entry, line)]
    scope = _find_missing_scope(evidence, entry)
    # A missing permission shows which credentials to ask for.
    if scope:
        cause += f" They lack {code(scope, 60)}."
    said = _find_credentials_hint(evidence)
    if said is not None:
        message, sentence = said
        cause += f" The user said{clock(message.at)}: {code(sentence, 140)}."
        quotes.append(evidence.quote_message(message, sentence))
        place = _WHERE.search(sentence)
        named = code(place.group(0).strip().rstrip(".,"), 80) if place else "that place"
        step = f"Make the call once with the credentials that the user named, {named}."
        if place is None:
            step = f"Log in the way the user said, {code(sentence, 140)}, and then make the call once."
        return diagnosis(KIND, cause, step, *quotes, check="The answer must no longer be a refusal; if it is, ask the user.")
    way = find_way_in_note(evidence, entry, _CREDENTIAL)
    if way is not None:
        cause += f" {way.source}{way.exclusion} speaks of another way in, with {way.joined_names}."
        quotes.append(way.quote)
        step = (
            f"Look at what that note says of {way.joined_names}. If it is the way for you, go that way once; credentials"
            " that it names are"
            " for you only if the user agrees."
        )
        return diagnosis(KIND, cause, step, *quotes, confidence="medium")
    if scope:
        step = (
            f"Ask the user for credentials that have {code(scope, 60)}, and say which call needs them. Neither "
            "the same credentials nor"
            " another form of the call helps."
        )
        return diagnosis(KIND, cause, step, *quotes)
    known = any_known_error(KIND, evidence)
    # Widely known refusals have a precise step of their own.
    if known is not None:
        return known
    step = (
        "Ask the user for valid credentials, and say which call was refused and with what words. No other form of the call"
        " helps."
    )
    login = next((each for each in list_offers(evidence.text(entry)) if _LOGS_IN.search(each)), None)
    # A new login was tried, without success.
    if login is not None and not evidence.was_tried(login):
        step = (
            f"The answer names what renews them, {code(login, 80)}: ask the user to run it, or run it if it asks for nobody's"
            " password; then make the call once."
        )
    return diagnosis(KIND, f"{cause} No place of other ones was found in the record.", step, *quotes, confidence="medium")


def _find_missing_scope(evidence: Evidence, entry: EntryView) -> str | None:
    """Return the scope or permission that is missing according to the answer."""
    said = evidence.text(entry)[:4_000]
    # Without such a word, a name in the message is no scope.
    if not re.search(r"scope|insufficient", said, re.IGNORECASE):
        return None
    names = [name for groups in _SCOPE.findall(said) for name in groups if name]
    return next(
        (
            name.rstrip(".:")
            for name in names
            if plain_name(name) and not name.startswith("error") and name.lower() not in _NO_SCOPE
        ),
        None,
    )


def _find_credentials_hint(evidence: Evidence) -> tuple[Message, str] | None:
    """Return the newest sentence of a person that says where credentials are."""
    for message in reversed(evidence.user_texts):
        for sentence in _SENTENCE.findall(message.text[:8_000]):
            # The sentence must say a place, and that something is there, and its message must be about credentials.
            named = _WHERE.search(sentence) and _LIES.search(sentence) and _CREDENTIAL.search(message.text[:8_000])
            if (named or _LOGIN.search(sentence)) and forbids(sentence) is None:
                return message, sentence.strip()
    return None
