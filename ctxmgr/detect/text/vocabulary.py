"""The meaning of action names, of commands, and of words in results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, cast

from ctxmgr.log.fast_json import json_object
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Observation

ActionClass = Literal["query", "mutation", "sleep", "paced", "poll", "gesture", "other"]
"""What a call does to the world. ``paced`` sleeps before it asks. ``other`` may change anything, so guards treat it
like a mutation."""

MUTATIONS = word_set(
    "edit write create update delete remove move rename insert append replace patch commit push send reply post put "
    "publish install upload add set apply save merge deploy mkdir copy multiedit drop submit assign close"
)
# These are changes only as the first word ("cancel_order"). Elsewhere they are things ("get_change_log", "find_book").
_LEADING_MUTATIONS = word_set(
    "modify change cancel book exchange reserve hold toggle enable disable reset reboot restart pay refund register "
    "approve grant revoke disconnect cancelar reservar modificar anular registrar pagar enviar crear"
)
# Some verbs are in other languages, because tools are named in the language of their authors.
QUERIES = word_set(
    "read view open list ls glob grep search find fetch get show cat head tail status diff log query describe inspect "
    "lookup browse recall explore outline check lint test tests think stat count preview screenshot snapshot navigate goto "
    "visit buscar consultar obtener leer listar ver suchen lesen anzeigen abfragen chercher lire obtenir afficher"
)
SEARCHES = word_set("search grep glob find query browse explore rg ls list recall buscar suchen chercher")
POLLS = word_set("poll wait await stdin bashoutput taskoutput monitor watch")
GESTURES = word_set("scroll swipe press key keypress hotkey pagedown pageup next tap wheel")
ASKS_HUMAN = word_set(
    "askuser askuserquestion askhuman askfollowupquestion humaninput requestapproval requestuserinput waitforuser "
    "waitforapproval waitforhuman getuserinput userinput approval confirm elicit exitplanmode requestpermission "
    "confirmwithuser askquestion askforhelp humanapproval"
)
_PERSONS = word_set("human user person people operator approver customer manager supervisor")
_REQUESTS = word_set("ask request wait await prompt confirm consult")
_PAUSES = word_set("wait sleep pause delay")
FINISHES = word_set(
    "finish finished done complete completed submit exit attemptcompletion taskcomplete completetask finalanswer "
    "taskdone finishtask endtask terminate"
)
WRITES = word_set("edit editor write patch insert replace create multiedit append strreplace")
HAND_OVERS = word_set("handoff handover transfer say tell ask reply message")
_PASSES_ON = word_set("transfer handoff handover reassign assign escalate route forward return")
_HANDS_ON = word_set("transfer handoff handover hand escalate")
_STAFF = word_set("human person people operator manager supervisor representative staff")
LOOKOUTS = word_set(
    "task tasks todo todos board inbox mail mails status queue job jobs message messages notification notifications "
    "progress health heartbeat ps"
)
DELEGATES = word_set("task agent spawn delegate dispatch subagent handoff spawnagent runagent newtask")

_ASKING = word_set("can is are has have does check get verify should")
"""First words that make a name a question, whatever verb but a poll follows: ``can_send_mms`` sends nothing."""

_COMMAND_KEYS = frozenset({"command", "cmd", "script"})
_SHELLS = word_set("bash shell sh exec terminal command cmd powershell console")
_SHELL_QUERIES = word_set(
    "ls cat head tail grep rg find fd wc pwd echo which file stat tree du df ps env date whoami id uname sort uniq cut "
    "jq nl less more diff test true printenv type hostname free uptime history man"
)
# Programs whose other verbs change something.
_SHELL_QUERY_PAIRS = frozenset(
    f"{tool} {verb}"
    for tool, verbs in {
        "git": "status log diff show branch blame remote ls-files rev-parse grep describe",
        "docker": "images",
        "systemctl": "is-active is-enabled",
        "npm": "outdated",
        "pip": "freeze",
    }.items()
    for verb in verbs.split()
)
_SHELL_MUTATIONS = word_set(
    "rm mv cp mkdir touch tee sed chmod chown ln patch dd tar unzip curl wget apply_patch truncate rmdir"
)
# Options of curl that change something on the server or write a local file; below, one-letter options with a value.
_CURL_CHANGES = word_set("--json --upload-file --output --config --next -d -F -T -o -O -K")
_CURL_CHANGE_STARTS = ("--data", "--form", "--remote-name", "--url-query")
_CURL_VALUES = "AbcCDeEHmPQrtuUwxyYz"
_VERB_TOOLS = word_set(
    "aws gcloud az oc kubectl docker podman helm terraform gh glab heroku flyctl fly vercel doctl consul vault nomad etcdctl "
    "systemctl virsh npm pip cargo apt brew snap dnf lxc vagrant nmcli ip zfs redis-cli rabbitmqctl kafka-topics"
)
"""Programs whose first verb says what they do: ``aws rds describe-db-instances``."""
_ASKING_VERBS = word_set("describe get list ls show status logs log info inspect top head view events history ps search stats")
_ACTING_VERBS = word_set("exec run scale start stop restart rollout up down build pull login cp rm port-forward invoke wait")
_MAX_COMMAND_WORDS = 6
# Task runners. Only the name of their target says what they do.
_RUNNERS = word_set("make just task rake invoke npm yarn pnpm bun gradle ./gradlew mvn ansible-playbook cap fab")
_CHANGING = word_set("deploy publish release install upload migrate upgrade rollback destroy provision seed ship push commit")
_QUERY_STARTS = (
    _SHELL_QUERIES | {"cd"} | _VERB_TOOLS | {"sed", "curl"} | {pair.partition(" ")[0] for pair in _SHELL_QUERY_PAIRS}
)
"""First words of commands that may only ask and change nothing."""
_SEPARATORS = ("&&", ";", "|")
_SLEEP = lazy_pattern(r"^(?:sleep|timeout /t|start-sleep)\s+(?:-\w+\s+)?[1-9]", re.IGNORECASE)
_SLEEP_STARTS = "sStT\u017f"  # the last one is the long s, which equals an s if case is ignored
_SLEEP_HINTS = ("leep", "meout")
"""Parts of every pause, in lower case."""
# No address of this machine or of a private network, and no bare host name, which a local network resolves.
_REMOTE = lazy_pattern(r"https?://(?!localhost|127\.|0\.0\.0\.0|\[::1\]|10\.|192\.168\.|[\w-]+[:/])", re.IGNORECASE)
_TIME = lazy_pattern(r"\s*(?:echo\s+[\"']?\$\()?\s*(?:date|uptime|time|Get-Date)\b[^;&|<>]*", re.IGNORECASE)
_CLOCKS = word_set("time date datetime clock now timestamp")
_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LETTERS = lazy_pattern(r"[^a-z]")
_MAX_REMEMBERED = 400
_MAX_COMMAND = 2000
_MAX_WORD = 80

_WAITING = lazy_pattern(
    r"\b(?:still (?:running|working|building|waiting|in progress|processing)|in[ _-]?progress|running|pending|queued"
    r"|waiting|not (?:yet )?(?:ready|finished|done|complete)|no new (?:output|messages?)|processing|building"
    r"|creating|provisioning|starting|deploying|initiali[sz]ing|installing|syncing|propagating)\b"
    r"|\b[0-9]{1,2}(?:\.[0-9]+)? ?% (?:complete|done|finished|restored|copied|uploaded|downloaded|processed)"
)
_WAITING_HINTS = ("ing", "progress", "queued", "not ", "no new", "%")
_MEASURES = lazy_pattern(
    r"(?:^|[;&|]\s*|\s)(?:perf|hyperfine|wrk2?|fio|iperf3?|ping|sysbench|stress-ng|k6|locust|siege|\S*bench\S*)\s|^\s*time\s|timeit"
)
_MEASURING = word_set("benchmark bench measure profile timeit latency")
_FAILURE = lazy_pattern(
    r"\b(?:can ?not|can't|could not|couldn't|unable to|failed|failure|failing|fails|error|no connection|not working"
    r"|does not work|doesn't work|unavailable|unreachable|not responding|denied|refused)\b",
    re.IGNORECASE,
)
_REFUSAL = lazy_pattern(
    r"\b(?:wrong|incorrect|invalid|rejected|declined|not (?:accepted|correct|valid|found)|no such|does(?: not|n't) exist)\b",
    re.IGNORECASE,
)
_TROUBLE = lazy_pattern(
    r"\b(?:fatal|panic|crash\w*|\w*back-?off|exception|traceback|is not set|DOWN|unhealthy|degraded)\b", re.IGNORECASE
)
# Pages that a site shows instead of the requested one.
_WALL = lazy_pattern(
    r"\b(?:(?:sign|log) ?in (?:to (?:continue|read|view|see|access)|or (?:start|register|create|sign up))|to continue\b.{0,40}"
    r"\b(?:sign|log) ?in|captcha|(?:verify|prove) (?:that )?you(?:'re| are) (?:a )?human|enable javascript"
    r"|checking your browser|subscribe to (?:continue|read))\b",
    re.IGNORECASE,
)
_LOGIN = lazy_pattern(
    r"\b(?:401|unauthori[sz]ed|unauthenticated|not (?:logged in|authenticated)|authentication (?:required|failed|error)"
    r"|invalid (?:x-)?(?:api[ _-]?key|access token|token|credentials?)"
    r"|(?:token|session|credentials?|api key) (?:has |is )?expired"
    r"|login required)\b",
    re.IGNORECASE,
)
_OWN_LIMIT = lazy_pattern(
    r"timed out after|command timed out|timeout after|execution timed out|(?:took|taking|ran for) (?:more|longer) than \d"
    r"|exceeded (?:the|its) (?:time limit|timeout)|time limit exceeded",
    re.IGNORECASE,
)
# Rate limits, overload and broken connections, in lower case.
_TRANSIENT = (
    "too many requests", "rate limit", "rate-limit", "ratelimit", "rate_limit", "overloaded", "service unavailable",
    "bad gateway", "gateway timeout", "gateway time-out", "temporarily unavailable", "try again later",
    "connection reset", "connection refused", "connection aborted", "connection timed out", "econnreset",
    "econnrefused", "etimedout", "eai_again", "name resolution", "timed out", "timeout", "time-out",
)  # fmt: skip
_TRANSIENT_CODE = lazy_pattern(r"(?:429|50[234]|529)\b")


@lru_cache(maxsize=1024)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name[:200]))


@lru_cache(maxsize=1024)
def _normalise(name: str) -> str:
    return _LETTERS.sub("", name[:200].lower())


@lru_cache(maxsize=1024)
def asks_human(action: str) -> bool:
    """Whether the action's answer comes from a person, who may take any time."""
    words = frozenset(_words(action))
    asks = not words.isdisjoint(_REQUESTS)
    return _normalise(action) in ASKS_HUMAN or (asks and ("approval" in words or not words.isdisjoint(_PERSONS)))


def writes(start: Observation) -> bool:
    """Whether the call writes content of the agent's own making, as editors and patches do."""
    if isinstance(start.input, dict):
        for key in ("command", "cmd", "script"):
            command = cast("dict[str, object]", start.input).get(key)
            if isinstance(command, str):
                return ">" in command or _classify_command(command) == "mutation"
    return not WRITES.isdisjoint(_words(start.action))


def pauses(start: Observation) -> bool:
    """Whether the call only waits for a duration: ``wait {"seconds": 20}``."""
    fields = json_object(start.input)
    numbers = bool(fields) and all(type(value) in (int, float) for value in fields.values())
    return numbers and not _PAUSES.isdisjoint(_words(start.action))


def measures(command: str, action: str) -> bool:
    """Whether the call measures how long something takes. Then the durations in its answer are the news."""
    return _MEASURES.search(command[:300]) is not None or not _MEASURING.isdisjoint(_words(action))


def is_lookout(start: Observation) -> bool:
    """Whether the call looks at something that others change: a board, an inbox, the state of a repository or a job.

    The same look again is routine then. Commands are read too; `looks_for_news` goes by the tool's name alone, and is about
    waiting for another agent.
    """
    command = start.input if isinstance(start.input, str) else ""
    if isinstance(start.input, dict):
        fields = cast("dict[str, object]", start.input)
        command = next((str(fields[key])[:80] for key in ("command", "cmd", "script") if key in fields), "")
    if command:
        # The first words name what is looked at: "git status", "docker compose ps". Later words are names of files.
        return not LOOKOUTS.isdisjoint(_words(" ".join(command.split()[:3])))
    return not LOOKOUTS.isdisjoint(_words(start.action))


def searches(start: Observation) -> bool:
    """Whether the call looks for something that need not exist, so that a miss is an answer. Any command may do so."""
    if isinstance(start.input, dict) and not _COMMAND_KEYS.isdisjoint(cast("dict[object, object]", start.input)):
        return True
    return is_shell(start.action) or not SEARCHES.isdisjoint(_words(start.action))


def fetches(start: Observation) -> bool:
    """Whether the call reads a page from another machine. No file written here changes such a page."""
    if not isinstance(start.input, dict):
        return False
    fields = cast("dict[str, object]", start.input)
    address = fields.get("url", fields.get("uri"))
    return isinstance(address, str) and _REMOTE.match(address[:300]) is not None and not is_shell(start.action)


def asks_the_time(start: Observation) -> bool:
    """Whether the call only asks for the time."""
    command = start.input if isinstance(start.input, str) and is_shell(start.action) else ""
    if isinstance(start.input, dict):
        fields = cast("dict[str, object]", start.input)
        command = next((fields[key] for key in ("command", "cmd", "script") if key in fields), "")
        if isinstance(command, list):
            command = " ".join(str(word) for word in cast("list[object]", command)[-1:])
    if command:
        return isinstance(command, str) and _TIME.fullmatch(command[:400]) is not None
    words = _words(start.action)
    return not _CLOCKS.isdisjoint(words[-2:]) and words[:1] != ("set",)


@lru_cache(maxsize=1024)
def finishes(action: str) -> bool:
    """Whether the action declares the work done."""
    return _normalise(action) in FINISHES


@lru_cache(maxsize=1024)
def delegates(action: str) -> bool:
    """Whether the action hands work to another agent."""
    return _normalise(action) in DELEGATES or not DELEGATES.isdisjoint(_words(action))


def passes_on(action: str) -> bool:
    """Whether the action passes a thing to somebody else to deal with: a ticket, a case, a task."""
    return not _PASSES_ON.isdisjoint(_words(action))


@lru_cache(maxsize=1024)
def calls_a_person(action: str) -> bool:
    """Whether the action passes the conversation to a person of the staff, who goes on: ``transfer_to_human_agents``."""
    words = _words(action)
    # After the last "to" stands who gets it: `escalate_to_manager`. `transfer_manager_files_to_archive` calls nobody.
    receiver = words[-words[::-1].index("to") :][:2] if "to" in words[:-1] else words
    return not _HANDS_ON.isdisjoint(words) and not _STAFF.isdisjoint(receiver)


def is_last(action: str) -> bool:
    """Whether nothing is expected of the run after this action."""
    return finishes(action) or calls_a_person(action)


def hands_over(action: str) -> bool:
    """Whether the action gives words or work to another agent."""
    return delegates(action) or not HAND_OVERS.isdisjoint(_words(action))


_NEWS = frozenset({"inbox", "mailbox", "messages", "mentions", "replies"})


def looks_for_news(action: str) -> bool:
    """Whether the action waits for what another agent sends: a poll, or a look into an inbox.

    A look at a state, such as ``get_status``, is none, although others change it (see `is_lookout`).
    """
    return classify(action, "", "") == "poll" or not _NEWS.isdisjoint(_words(action))


def classify(action: str, verb: str, command: str, pollers: Iterable[str] = ()) -> ActionClass:
    """Return what a call does to the world.

    Args:
        action: name of the action.
        verb: an ``action`` or ``operation`` in its input, which says more than the name ("" if there is none).
        command: the shell command in its input ("" if there is none).
        pollers: further actions that are polls.
    """
    if action in pollers:
        return "poll"
    if len(action) + len(verb) + len(command) > _MAX_REMEMBERED:
        return _classify(action, verb, command)
    return _known_class(action, verb, command)


def surely_changes(command: str) -> bool:
    """Whether the first word of a command shows that it is a mutation or unknown. False leaves it open.

    This is a fast answer for most commands; `classify` reads the whole command.
    """
    first = command[:_MAX_WORD].split(None, 1)
    if len(first) < 2 or first[0] in _QUERY_STARTS or ";" in first[0] or "|" in first[0] or "&" in first[0]:
        return False
    lower = command[:_MAX_COMMAND].lower()
    return _SLEEP_HINTS[0] not in lower and _SLEEP_HINTS[1] not in lower


def _classify(action: str, verb: str, command: str) -> ActionClass:
    if command:
        return _classify_command(command)
    # Of `register.search` and `mcp__orders__find` the end is the verb: what stands before it may be one by accident.
    last = action.rpartition("__")[2].rpartition(".")[2]
    if not verb and last != action and (meaning := _classify(last, "", "")) in ("query", "poll"):
        return meaning
    for name in (verb, action):
        words = _words(name)
        if (
            words in (("sleep",), ("delay",), ("pause",), ("snooze",))
            or words[-1:] == ("wakeup",)
            or words[-2:] == ("wake", "up")
        ):
            return "sleep"
        if words[:1] and words[0] in _ASKING and POLLS.isdisjoint(words):
            return "query"
        # Polls come first ("wait_for_write"). A change outweighs a question ("read_and_update").
        for vocabulary, meaning in _MEANINGS:
            if not vocabulary.isdisjoint(words) or (meaning == "mutation" and not _LEADING_MUTATIONS.isdisjoint(words[:1])):
                return meaning
    return "other"


_known_class = lru_cache(maxsize=1024)(_classify)
"""`_classify` with a cache, since agents make few different calls. Long texts are not cached, so the cache stays small."""

_MEANINGS: tuple[tuple[frozenset[str], ActionClass], ...] = (
    (POLLS, "poll"), (GESTURES, "gesture"), (MUTATIONS, "mutation"), (QUERIES, "query"),
)  # fmt: skip


def _classify_command(command: str) -> ActionClass:
    head = command[:_MAX_COMMAND]
    for mark in _SEPARATORS:
        if mark in head:
            head = head.replace(mark, "\n")
    parts = [part for each in head.split("\n") if (part := each.strip())]
    # "sleep 30 && check" is a paced question. A command that only sleeps is a pause.
    sleeps = [part for part in parts if part[0] in _SLEEP_STARTS and _SLEEP.match(part)]
    if sleeps:
        return "sleep" if len(sleeps) == len(parts) else "paced"
    # A redirection may overwrite a file, unless it joins errors to the output or discards them.
    if not parts or (">" in command and ">" in command.replace("2>&1", "").replace("2>/dev/null", "")):
        return "other"
    meaning: ActionClass = "query"
    for part in parts:
        program = part.split(None, 1)[0]
        if program in _SHELL_MUTATIONS:
            if program not in ("sed", "curl") or not _only_shows(part.split()):
                return "mutation"
        elif program in _RUNNERS and _runs_change(part):
            return "mutation"
        # One part that does not ask is enough. Of the others, it only matters whether they change something.
        elif meaning == "query" and not _asks(program, part):
            meaning = "other"
    return meaning


def _asks(program: str, part: str) -> bool:
    """Whether a part of a command runs a program that only asks."""
    if program in _SHELL_QUERIES or program == "cd":
        return True
    words = part.split(None, 2) if program != "git" else _plain_git(part.split())
    if " ".join(words[:2]) in _SHELL_QUERY_PAIRS:
        return True
    return program in _VERB_TOOLS and _verb_asks(part.split(None, _MAX_COMMAND_WORDS)[1:_MAX_COMMAND_WORDS])


def _only_shows(words: list[str]) -> bool:
    """Whether a command only shows something: ``sed -n 1,40p a.py``, ``curl -s https://example.org``."""
    if words[0] == "sed":
        short = [word for word in words[1:] if word[0] == "-" and word[1:2] != "-"]
        return (
            any("n" in word for word in short)
            and not any("i" in word for word in short)
            and "--in-place" not in " ".join(words)
        )
    return words[0] == "curl" and _only_gets(words[1:])


def _only_gets(words: list[str]) -> bool:
    """Whether the options of curl ask for a page, and neither send nor write anything."""
    for at, word in enumerate(words):
        if word.startswith("--"):
            name, _, value = word.partition("=")
            if name in _CURL_CHANGES or name.startswith(_CURL_CHANGE_STARTS):
                return False
            method = value or "".join(words[at + 1 : at + 2]) if name == "--request" else "GET"
        else:
            method = "GET"
            for place, letter in enumerate(word[1:] if word[0] == "-" else ""):
                if f"-{letter}" in _CURL_CHANGES:
                    return False
                if letter == "X":
                    method = word[place + 2 :] or "".join(words[at + 1 : at + 2])
                # The rest of the word is the value of this option: -HAccept, -XGET.
                if letter == "X" or letter in _CURL_VALUES:
                    break
        if method.strip("\"'=") not in ("GET", "HEAD"):
            return False
    return bool(words)


def _runs_change(part: str) -> bool:
    """Whether a task runner's target is named after a change: ``make deploy``, ``npm run publish``."""
    targets = [
        word for word in part.split(None, _MAX_COMMAND_WORDS)[1:_MAX_COMMAND_WORDS] if word[0] != "-" and "=" not in word
    ]
    return any(not _CHANGING.isdisjoint(_words(word)) for word in targets if word != "run")


def _verb_asks(words: Iterable[str]) -> bool:
    """Whether the first verb in a command asks for something: ``describe-db-instances``, ``get``."""
    for word in words:
        verb = word.partition("-")[0]
        if verb in _ASKING_VERBS:
            return True
        if verb in _ACTING_VERBS or verb in MUTATIONS:
            return False
    return False


def _plain_git(words: list[str]) -> list[str]:
    """Return the words of a git command without its global options, which don't say what it does."""
    while len(words) > 2 and words[0] == "git" and words[1].startswith("-"):
        # Only these two global options have their value in the next word: git -C /x status.
        words = words[:1] + words[(3 if words[1] in ("-C", "-c") else 2) :]
    return words


def is_waiting(text: str) -> bool:
    """Whether a result says that something is still under way. Only a short text can say so."""
    if len(text) > 2000:
        return False
    head = text[:400].lower()
    return any(hint in head for hint in _WAITING_HINTS) and _WAITING.search(head) is not None


def is_transient(error: str) -> bool:
    """Whether an error is trouble of the infrastructure (rate limits, time-outs), which waiting may cure."""
    head = error[:2000].lower()
    if any(phrase in head for phrase in _TRANSIENT):
        return True
    return any(not head[: match.start()][-1:].isalnum() for match in _TRANSIENT_CODE.finditer(head))


def is_own_limit(error: str) -> bool:
    """Whether a call exceeded its own time limit, which waiting does not cure."""
    return _OWN_LIMIT.search(error[:400]) is not None


def is_login_error(error: str) -> bool:
    """Whether an error says that the user is not logged in or not known. That affects every possible question."""
    return _LOGIN.search(error[:2000]) is not None


def is_wall(text: str) -> bool:
    """Whether a page is a barrier before all other pages: sign in, subscribe, prove that you are human."""
    return _WALL.search(text[:2000]) is not None


def says_failure(text: str) -> bool:
    """Whether a short answer says that something does not work. A long answer contains such words by chance."""
    return len(text) <= 300 and _FAILURE.search(text) is not None


def says_refusal(text: str) -> bool:
    """Whether a short answer says that what was given is wrong, or is not there."""
    return len(text) <= 300 and _REFUSAL.search(text) is not None


def tells_trouble(text: str) -> bool:
    """Whether an answer of any length says that something is wrong."""
    return _FAILURE.search(text[:4_000]) is not None or _TROUBLE.search(text[:4_000]) is not None


def is_shell(action: str) -> bool:
    """Whether the action runs commands, so that its name does not say what it does."""
    return not _SHELLS.isdisjoint(_words(action))
