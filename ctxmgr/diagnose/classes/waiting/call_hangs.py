"""A call does not return, and the record shows what it waits for."""

from __future__ import annotations

import re
from itertools import pairwise

from ctxmgr.diagnose.classes.waiting.documented_answers import (
    avoids_questions,
    find_documented_option,
    find_password_file,
    find_recorded_question,
)
from ctxmgr.diagnose.classes.waiting.process_gone import diagnose_gone
from ctxmgr.diagnose.classes.waiting.time_limits import diagnose_limit
from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence, call_input, call_key, clock, program_name, start_clause
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, last_command, split_command, tool_phrase
from ctxmgr.diagnose.evidence.durations import find_stop, wait_of
from ctxmgr.diagnose.evidence.files import asked_paths, find_move
from ctxmgr.diagnose.evidence.interactive_commands import RUNS_ON, Wait, find_command_wait
from ctxmgr.diagnose.evidence.texts import capital, code, contains_word, how_often, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "callHangs"


_INPUT = "it waits for input that nobody types"
_SERVER = "it does not end by itself: it runs until it is stopped"
_CHECK = "It must return; run it with a time limit, so that it can't hang again."
_FOLLOWS = lazy_pattern(r"\s(?:-\w*[fFw]|--follow|--watch)\b|\bwatch \b")
_FOLLOW_OPTION = lazy_pattern(r"\s(?:-[fFw]|--follow(?:=\S+)?|--watch)(?=\s|$)")
_STEP_FOLLOW = "It is the call without the option that follows; to wait for something, give it a limit, `timeout 60 COMMAND`."
_STEP_SERVER = "Start it in the background with its output in a file, `COMMAND > out.log 2>&1 &`, and then look at that file."
_STEP_INPUT = "Stop it, and give it what it asks for in advance: by its options, or on its input as in `echo ANSWER | COMMAND`."
_STEP_FIFO = "Stop it. Start the process at the other end first, in the background, or use an ordinary file; set a time limit."
_FIFO = lazy_pattern(r"\bmkfifo (?:-m ?\d+ )?([\w./-]{1,120})")
_READS_INPUT = lazy_pattern(
    r"\binput\s*\(|\bread -[a-z]*p|\breadline\b|getpass|\bprompt(?:s)?\s*\(|stdin\.read|gets\.chomp|\bScanner\(System\.in"
    r"|\bscanf\s*\(|\bselect \w+ in\b"
)
_LOOPS = lazy_pattern(r"\b(?:until|while !|while)\s([^;\n]{2,200});\s{0,4}do\b")
_CONDITION = lazy_pattern(r"[\w ./:=@\[\]\"'$!-]{2,70}")
_STARTS = lazy_pattern(r"\b(?:serve|server|dev|start|run|runserver|vite|nodemon|tsc|webpack\S*|jest|vitest|cargo)\b")
_NETWORK = lazy_pattern(
    r"^(?:curl|wget|ssh|scp|rsync|nc|git (?:clone|fetch|pull|push)|docker pull|pip install|npm (?:i|install|ci))\b"
)


_MOST_PROMPT_WORDS, _MOST_FRAMES, _USUAL_MS = 14, 4, 120_000
"""Words of a shell's prompt, frames of a stack dump that are shown, and a duration that shows how long the call should take."""
_ASKED = lazy_pattern(r"[\w ,.()\[\]/?:>'-]{3,70}")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what an open call waits for, or a call that was stopped because it did not return."""
    gone = diagnose_gone(KIND, evidence)
    if gone is not None:
        return gone
    for entry in evidence.failing_calls:
        if command_of(entry) and _was_stopped(evidence, entry):
            found = _diagnose_stopped_call(evidence, entry)
            if found is not None:
                return found
    for entry in _list_stopped_calls(evidence):
        wait = find_command_wait(command_of(entry))
        if wait is not None:
            return _explain_wait(evidence, entry, command_of(entry), wait)
        found = _diagnose_question(evidence, entry)
        if found is not None:
            return found
    for entry in evidence.hanging_calls:
        command = command_of(entry)
        # Earlier interrupted attempts of the program may hold its question.
        before = [each for each in evidence.entries_before(entry.index) if each.status == "interrupted"][:_MOST_BEFORE]
        for each in [entry, *(each for each in before if program_name(each) == program_name(entry))]:
            if (found := _diagnose_prompt(evidence, each, command_of(each))) is not None:
                return found
        found = (
            _diagnose_moved_file(evidence, entry)
            or (_diagnose_command(evidence, entry, command) if command else _diagnose_child(evidence, entry))
        )  # fmt: skip
        if found is not None:
            return found
    return None


def _list_stopped_calls(evidence: Evidence) -> list[EntryView]:
    """Return the calls of the trouble that a client stopped at a time limit without counting them as failed, newest first."""
    stopped = [each for each in reversed(evidence.loop) if each.status == "interrupted" and command_of(each)]
    stopped = [each for each in stopped if not evidence.is_past(each) and find_stop(evidence, each) is not None]
    return stopped if not evidence.hanging_calls else []


_STOPPED = lazy_pattern(
    r"timed? ?out|time limit|\bexit(?:ed)?(?: with)?(?: code| status)?:? ?(?:124|130|137|143)\b|\bkilled\b|terminated"
    r"|interrupted|no (?:new )?output (?:for|after|in)\b",
    re.IGNORECASE,
)
"""Results of a call that waited for somebody."""
_UNATTENDED = lazy_pattern(
    r"(?:stdin|input|standard input) (?:is )?not (?:a |from a )?(?:tty|terminal)|not a tty|waiting for your editor"
    r"|problem with the editor|terminal is dumb|EOF when reading|cannot prompt|prompt(?:ed)? for input|no tty present"
    r"|\[y/n\]:? abort",
    re.IGNORECASE,
)
"""Results of a call that needed somebody and ended by itself, because nobody was there."""
_TIMED = lazy_pattern(r"\btimed out after\b|\btime limit\b|\bexit(?:ed)?(?: with)?(?: code| status)?:? ?124\b", re.IGNORECASE)
"""Words of a client, or of `timeout`, for a call that did not end in time."""
_MOST_END, _MOST_START, _MOST_BEFORE = 600, 120, 3
"""Characters at either end of a result where a client says so; earlier attempts that are read."""


def _was_stopped(evidence: Evidence, entry: EntryView) -> bool:
    """Whether a call waited too long or for nobody, according to the text at the ends of its output."""
    return _says_at_ends(evidence, entry, _STOPPED) or _says_at_ends(evidence, entry, _UNATTENDED)


def _says_at_ends(evidence: Evidence, entry: EntryView, pattern: re.Pattern[str]) -> bool:
    said = evidence.text(entry)
    # A client says so at either end. In the middle, a program may speak of time-outs of its own.
    return pattern.search(said[-_MOST_END:]) is not None or pattern.search(said[:_MOST_START]) is not None


def _ended_by_itself(evidence: Evidence, entry: EntryView) -> bool:
    """Whether a call failed because nobody was there to answer, so that nothing had to stop it."""
    unattended = entry.status != "open" and _says_at_ends(evidence, entry, _UNATTENDED)
    return unattended and not _says_at_ends(evidence, entry, _STOPPED)


def _diagnose_stopped_call(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say what a stopped call has asked for, if its output ends in a prompt or its program is one that asks."""
    command = command_of(entry)
    # A stack dump shows the line itself, while a prompt only shows that the program asks.
    dumped = _diagnose_stack_dump(evidence, entry) if _DUMP.search(evidence.text(entry)) else None
    found = dumped or _diagnose_prompt(evidence, entry, command) or _diagnose_earlier_question(evidence, entry, command)
    wait = find_command_wait(command) if found is None else None
    if found is None and wait is None:
        found = diagnose_limit(KIND, evidence, entry) or _diagnose_question(evidence, entry)
    if found is None and wait is None and _TIMED.search(evidence.text(entry)):
        return _diagnose_endless(evidence, entry, command)
    return found if wait is None else _explain_wait(evidence, entry, command, wait)


_PROMPT = lazy_pattern(
    r"(?P<asked>[^\n]{0,200}(?:\[[yY]/[nN]\]|\((?:yes|y)/(?:no|n)[^)\n]{0,30}\)|\((?:yes|y|no|n)\)|\(END\)|--More--|password"
    r"|passphrase|passcode|\[[^\]\n]{0,40}\]|[?:>$#%])[:?>]? {0,3})\Z",
    re.IGNORECASE,
)
_MEASURES = lazy_pattern(r"\d ?%\W{0,3}\Z|\[[\s\d/=#*>.%-]{0,40}\]\Z")
_SECRET = lazy_pattern(r"pass(?:word|phrase|code)|\bPIN\b|token|one-time|OTP|2FA", re.IGNORECASE)
_HOST_KEY = lazy_pattern(r"authenticity of host|continue connecting")
_ANSWERS = (
    (r"\bopenssl req\b", "give the subject with `-subj` and the rest with `-batch`"),
    (r"\bopenssl\b", "give its answers by options, such as `-passin`, `-passout` and `-batch`"),
    (r"\b(?:ssh|scp|sftp|rsync)\b", "run it with `-o BatchMode=yes`, which fails in place of asking"),
    (r"(?<![\w-])git\b", "set `GIT_TERMINAL_PROMPT=0`, which makes it fail in place of asking"),
    (r"\b(?:apt|apt-get|dnf|yum|zypper)\b", "give it `-y`, if the user wants that"),
    (r"\b(?:npm|npx|pnpm|yarn|bun)\b", "give it `--yes`"),
    (
        r"\bterraform\b.{0,80}\binit\b",
        "`-force-copy` answers yes to the copy of the state, where the user wants that state kept; `-input=false`"
        " fails in place of asking",
    ),
    (r"\bterraform\b", "give it `-input=false`, and `-auto-approve` only if the user allowed it"),
    (
        r"\b(?:rm|mv|cp)\b",
        "name the files exactly, and use the form that does not ask only if the user wants them gone or replaced",
    ),
    (r"\bgpg\b", "give it `--batch`"),
    (r"\b(?:psql|mysql|mongosh|sqlite3|redis-cli)\b", "give it the statement with the command"),
    (r"\bpip\b", "give it `-y` or `--no-input`"),
    (r"\bcargo|rustup\b", "give it `-y`"),
    # Console programs of Symfony, Doctrine and Laravel
    (
        r"\bbin/console\b|\bartisan\b|\bcomposer\b|\bdoctrine:\w",
        "give it `--no-interaction` (`-n`), if the user wants what it asks about",
    ),
    (r"\bmanage\.py\b", "give it `--noinput`, if the user wants what it asks about"),
    (r"\b(?:gh|az|aws|gcloud|heroku|vercel|fly)\b", "give its answers as options, or ask the user to log in"),
)
"""Ways to keep a program from asking."""


_CLOSING = lazy_pattern(
    r"(?:\n+\[?(?:exit(?: code)?[ :]*\d+|command timed out[^\n]*|[^\n]{0,40}timed? ?out[^\n]{0,60}"
    r"|[^\n]{0,60}\b(?:killed|terminated|exceed\w* time)[^\n]{0,60}|</?\w{1,40}>)\]?\.?)+\s*\Z",
    re.IGNORECASE,
)
"""Text of a client below the output of a call that it has stopped."""


def _diagnose_prompt(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    """Say what an open call has asked, if its output so far ends in a prompt."""
    said = _CLOSING.sub("", (evidence.output_so_far(entry) or evidence.text(entry)).rstrip("\n"))
    match = _PROMPT.search(said[-400:])
    asked = match.group("asked").strip() if match else ""
    # A long line that ends like a shell's prompt is output, and so is a measure of progress.
    if len(asked) < 3 or _MEASURES.search(asked) or (asked[-1:] in ":>$#%" and len(asked.split()) > _MOST_PROMPT_WORDS):
        return None
    shown = f"{code(asked, 70)}" if _ASKED.fullmatch(asked) else "a question"
    ended = _ended_by_itself(evidence, entry)
    waits = "and nobody answers" if ended else "and it waits for input that nobody types"
    cause = f"{_describe_start(evidence, entry)}: its output ends in a prompt, {shown}, {waits}."
    quotes = [evidence.quote(entry, asked), evidence.quote(entry, command or call_input(entry)[:300])]
    # A pager waits for a key, not for an answer.
    if asked.endswith(("(END)", "--More--")):
        step = "Stop it and run it without its pager: `PAGER=cat`, `--no-pager`, or with `| cat` at its end."
    elif _SECRET.search(asked):
        step = (
            "Stop it. Ask the user to do this step or to say how it is to log in; do not guess what it asks for, and "
            "run it non-interactive."
        )
    elif _HOST_KEY.search(said[-_MOST_END:]):
        step = (
            "Stop it. Ask the user whether the fingerprint of this host key is right; if it is, add the key to "
            "`known_hosts` and make the call with `-o BatchMode=yes`, which fails in place of asking."
        )
    elif (option := _find_option(evidence, entry, asked)) is not None:
        name, source = option
        step = (
            f"Stop it and run it with {code(name, 50)}, which {evidence.source(source)} names, so that it does not ask"
            " (if what it asks is what the user wants)."
        )
        quotes.append(evidence.quote(source))
    else:
        step = _describe_unattended_run(command)
    step, check = (_without_stop(step), _CHECK_ASKED) if ended else (step, _CHECK)
    return diagnosis(KIND, cause, step, *quotes, check=check)


def _describe_unattended_run(command: str) -> str:
    """Return how to run a program so that it asks nothing."""
    way = next((way for pattern, way in _ANSWERS if re.search(pattern, command)), "give it its answers by options")
    return (
        f"Stop it and run it so that it does not ask: {way}; where there is no option for it, answer on its input "
        "(stdin), or close that with `</dev/null`."
    )


_QUESTION = lazy_pattern(
    r"[^\n]{0,120}(?:\[[yY](?:es)?/[nN]o?\]|\(y(?:es)?/n(?:o)?\)|Enter a value:|\b(?:Do you want to|Are you sure"
    r"|Proceed|Continue|Overwrite)\b"
    r"[^\n?]{0,90}\?)"
)
_OPTION = lazy_pattern(r"(?<![\w-])--[a-z][\w-]{1,30}")
# Stack dumps of Python's faulthandler, Go, a JVM and py-spy
_DUMP = lazy_pattern(r"most recent call first\)|^goroutine \d+ \[|Full thread dump|^Thread \d+ \(idle", re.MULTILINE)
_OWN_FRAME = lazy_pattern(
    r"^\s*File \"(?P<file>[^\"\n]{2,200})\", line (?P<line>\d{1,6})(?:,)? in (?P<name>[\w.<>]{1,80})"
    r"|^\s+at (?:(?P<jname>[\w.$<>]{2,120})\()(?P<jfile>[\w.-]{2,60}):(?P<jline>\d{1,6})\)?",
    re.MULTILINE,
)
_LIBRARY = lazy_pattern(r"/(?:lib|lib64|site-packages|dist-packages|node_modules|jre|jdk)\S*/|^<|^node:|^(?:java|jdk|sun)\.")


def _find_option(evidence: Evidence, entry: EntryView, asked: str) -> tuple[str, EntryView] | None:
    """Return the option that avoids a question, according to the help or the source of the program, and its entry."""
    command = command_of(entry)
    programs = {
        name for words in split_command(command) for word in words[:_MOST_PROGRAM_WORDS]
        if len(name := word.rpartition("/")[2]) > 2 and name[0].isalpha() and "=" not in word and name not in _WRAPPERS
    }  # fmt: skip
    stems = {word[:5].casefold() for word in re.findall(r"[A-Za-z]{4,30}", asked)}
    near: tuple[str, EntryView] | None = None
    # Only the help and the source of the program itself name its options.
    for other in evidence.latest_before(entry.index, MOST_CURRENT):
        said = evidence.text(other)
        if other.status == "open" or not any(word in f"{call_input(other)}" for word in programs) or evidence.has_failed(other):
            continue
        for name in dict.fromkeys(_OPTION.findall(said[:12_000])):
            # The option was given, and did not avoid the question.
            if name in command:
                continue
            # An option that says yes to everything is better than one that shares a word.
            if avoids_questions(name):
                return name, other
            if name[2:7].casefold() in stems:
                near = near or (name, other)
    return near


_MOST_PROGRAM_WORDS = 6
_WRAPPERS = frozenset(
    ("nice", "timeout", "bash", "python", "python3", "node", "nohup", "env", "sudo", "stdbuf", "workspace", "work", "home")
)


def _diagnose_earlier_question(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    """Say that a call waits for an answer, if its own output or that of another form of it holds the question."""
    for other in [entry, *evidence.failing_calls, *reversed(evidence.tail)]:
        if program_name(other) != program_name(entry) or not _was_stopped(evidence, other):
            continue
        matches = list(_QUESTION.finditer(evidence.text(other)[-4_000:]))
        if not matches:
            continue
        asked = matches[-1].group(0).strip()
        shown = code(asked, 90) if _ASKED.fullmatch(asked) else "a question"
        whose = "" if other.index == entry.index else f", as {evidence.source(other)} shows"
        ended = _ended_by_itself(evidence, entry)
        waits = "and nobody answers" if ended else "and waits for an answer that nobody gives"
        cause = f"{_describe_start(evidence, entry)}: it asks a question, {shown}{whose}, {waits}."
        option = _find_option(evidence, entry, asked)
        step = (
            _describe_unattended_run(command)
            if option is None
            else f"Stop it and run it with {code(option[0], 50)}, which {evidence.source(option[1])} names."
        )
        step, check = (_without_stop(step), _CHECK_ASKED) if ended else (step, _CHECK)
        return diagnosis(KIND, cause, step, evidence.quote(other, asked), check=check)
    return None


def _diagnose_question(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that a call may wait for an answer: a document has an option against questions, or the record shows one."""
    return _diagnose_documented_option(evidence, entry) or _diagnose_recorded_question(evidence, entry)


def _diagnose_recorded_question(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that a call most likely waits for an answer: the record shows that its program asks, and a pipe hides that."""
    found = find_recorded_question(evidence, entry)
    if found is None:
        return None
    question, hidden = found
    cause = (
        f"{_describe_start(evidence, entry)}: most likely it waits for an answer that nobody gives. This program asks,"
        f" {code(question.name, 90)}, as {evidence.source(question.entry)} shows, and {code(hidden, 30)} shows nothing of that"
        " before the end."
    )
    option = _find_option(evidence, entry, question.name)
    step = (
        _describe_unattended_run(" ".join(last_command(command_of(entry))))
        if option is None
        else f"Stop it and run it with {code(option[0], 50)}, which {evidence.source(option[1])} names."
    )
    quotes = evidence.quote(question.entry, question.line), evidence.quote(entry, command_of(entry))
    return diagnosis(KIND, cause, step, *quotes, check=_CHECK, confidence="medium")


def _diagnose_stack_dump(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say in which line of the project's own code a call is stuck, if its output holds a stack dump."""
    frames = [
        (
            match.group("file") or match.group("jfile"),
            match.group("line") or match.group("jline"),
            match.group("name") or match.group("jname"),
        )
        for match in _OWN_FRAME.finditer(evidence.text(entry)[-8_000:])
    ]
    inside = {
        frame: " in " + code(before[0].rpartition("/")[2].partition(".")[0] + "." + before[2], 50)
        for before, frame in pairwise(frames) if _LIBRARY.search(before[0]) and plain_name(before[2])
    }  # fmt: skip
    own = list(dict.fromkeys(frame for frame in frames if not _LIBRARY.search(frame[0]) and not _LIBRARY.search(frame[2])))
    if not own or not all(plain_name(part.strip("<>")) for frame in own[:_MOST_FRAMES] for part in frame):
        # paths with spaces or special characters are not shown
        return None
    places = [
        code(f"{evidence.name(file)}:{line} in {name}", 90) + inside.get((file, line, name), "")
        for file, line, name in own[:_MOST_FRAMES]
    ]
    cause = f"{_describe_start(evidence, entry, 90)}. The dump of its stack shows where it stands: {', '.join(places)}."
    step = (
        f"More time can't help. Read these lines, {' and '.join(places[:2])}: find what each waits for (a queue, a"
        " lock, a thread, an answer),"
        " and which case never puts, releases or counts it; mend that and run it once with a time limit."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry), check=_CHECK, confidence="medium")


def _diagnose_command(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    found = _diagnose_endless(evidence, entry, command) or _diagnose_question(evidence, entry)
    if found is not None:
        return found
    # Network programs come last, because they may also hang for any of the reasons above.
    if any(_NETWORK.match(" ".join(words)) for words in split_command(command)):
        return _diagnose_network(evidence, entry, command)
    return _diagnose_earlier_duration(evidence, entry, command)


def _diagnose_endless(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    """Say why a command does not end by itself: it waits for somebody, follows, serves, repeats, or asks for input."""
    # A background process blocks nobody.
    background = re.search(r"&\s*$", command) is not None
    if (wait := find_command_wait(command)) is not None:
        return _explain_wait(evidence, entry, command, wait)
    made = {name for each in evidence.recent for name in _FIFO.findall(command_of(each))}
    fifo = next((name for name in sorted(made) if contains_word(name.rpartition("/")[2], command)), None)
    if fifo is not None and not background:
        why = f"{code(fifo, 80)} is a named pipe, and opening it waits until another process opens its other end"
        return _explain_wait(evidence, entry, command, Wait(why, _STEP_FIFO))
    if not background and _FOLLOWS.search(command) and not _STARTS.search(command) and RUNS_ON.search(command):
        plain = " ".join(_FOLLOW_OPTION.sub(" ", command).split())
        wait = Wait(_SERVER, f"Stop it and run {code(plain, 120)}, which shows what is there and ends. {_STEP_FOLLOW}")
        return _explain_wait(evidence, entry, command, wait)
    if (
        not background
        and wait_of(entry) is None
        and (RUNS_ON.search(command) or re.search(r"\bdocker[ -]compose up\b(?!.*(?:-d\b|--detach))", command))
    ):
        return _explain_wait(
            evidence, entry, command, Wait(_SERVER, _STEP_SERVER),
        )  # fmt: skip
    loops = _LOOPS.search(command)
    if loops is not None and not background:
        until = loops.group(1).strip()
        # `while` waits for the end of its condition, `until` and `while !` for its beginning.
        ends = re.match(r"while (?!!)", loops.group(0)) is not None
        shown = f" {code(until, 70)}" if _CONDITION.fullmatch(until) else ""
        how = f"{'as long as' if ends else 'until'}{shown or ' its condition'} holds"
        why = f", and why{shown} {'still holds' if ends else 'fails'}" if shown else ""
        cause = (
            f"{_describe_start(evidence, entry)}: it repeats {how}, without a limit, "
            f"and nothing in the record shows that it will{' end' if ends else ''}."
        )
        step = (
            "Stop it. Look once at what it waits for, the state and the log of what should bring it "
            f"about{why}; if you wait again, set a limit, as with `timeout 60 COMMAND`."
        )
        return diagnosis(KIND, cause, step, evidence.quote(entry, command), check=_CHECK)
    return _diagnose_asking_program(evidence, entry, command)


def _diagnose_asking_program(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    """Say which line of a program's source asks for input."""
    # Redirected or piped input answers it.
    if "<" in command or "|" in command:
        return None
    for word in dict.fromkeys(re.findall(r"[\w./-]{1,200}\.(?:py|sh|js|ts|rb|pl|php)\b", command)):
        content = evidence.last_content(word, entry.index)
        if content is None:
            continue
        line = next((line for line in content.lines[:4_000] if _READS_INPUT.search(line)), None)
        if line is not None:
            source = evidence.source(content.entry)
            cause = f"{_describe_start(evidence, entry)}: {_INPUT}. {capital(source)} shows {code(line.strip(), 110)}."
            return diagnosis(
                KIND, cause, _STEP_INPUT, evidence.quote(entry, command), evidence.quote(content.entry, line), check=_CHECK
            )
    return None


def _diagnose_network(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis:
    cause = f"{_describe_start(evidence, entry)}. It needs the network, and no answer is recorded."
    step = (
        "Stop it, and see whether it took effect. If it did not, make the call once with a time limit, such as `timeout 60 "
        "COMMAND`; if that ends without an answer, tell the user that the other side does not answer."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry, command), confidence="medium")


def _count_changes(evidence: Evidence, changed: list[EntryView]) -> str:
    own = all(evidence.is_own(each) for each in changed)
    return f"you made {len(changed)} changes" if own else f"{len(changed)} changes were made"


def _diagnose_earlier_duration(evidence: Evidence, entry: EntryView, command: str) -> Diagnosis | None:
    """Say how long the same call took earlier, if it returned then."""
    for other in evidence.entries_before(entry.index):
        if (
            call_key(other) == call_key(entry)
            and other.status == "ok"
            and other.duration_ms is not None
            # A long duration then is no proof that the call would have returned by now.
            and other.duration_ms < _USUAL_MS
        ):
            cause = (
                f"{_describe_start(evidence, entry)}; the same call returned after {other.duration_ms / 1000:.1f}"
                f" seconds{clock(other.ts)}."
            )
            changed = evidence.changes(other.index, entry.index)
            since = (
                f" Since then {_count_changes(evidence, changed)}, the last by {evidence.source(changed[-1])}."
                if changed
                else ""
            )
            step = (
                "Stop it, and see whether it took effect. If it did not, run it again once with a time limit, `timeout 60 "
                "COMMAND`; if it does not return, look at what was changed since it did."
            )
            return diagnosis(
                KIND, f"{cause}{since}", step, evidence.quote(other), evidence.quote(entry, command), confidence="medium"
            )
    return None


def _diagnose_moved_file(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that the call uses a place that is not used any more, as somebody else said who named another one."""
    for name in asked_paths(entry):
        move = find_move(evidence, entry, name)
        if move is not None:
            cause = f"{_describe_start(evidence, entry)}: it uses {code(name, 60)}, and {move.description}."
            step = f"Stop it, and use {code(move.place, 80)}, which {move.who} named, in place of {code(name, 60)}."
            quotes = (evidence.quote_message(move.message), evidence.quote(entry, command_of(entry) or call_input(entry)[:300]))
            return diagnosis(KIND, cause, step, *quotes, check=f"{code(move.place, 80)} must hold what you need.")
    return None


def _diagnose_child(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say what the agent does that an open call has launched."""
    children = [each for each in evidence.recent if each.parent == entry.id and each.agent != entry.agent]
    if not children:
        return None
    last = children[-1]
    name = last.agent if plain_name(last.agent) else "that agent"
    cause = (
        f"Your {tool_phrase(entry)} call{clock(entry.ts)} waits for {name[:60]}, whose last step was {evidence.source(last)},"
        f" {last.status}."
    )
    step = f"Do not wait any longer: end {name[:60]}, and do the rest of its work yourself from what it has found."
    return diagnosis(KIND, cause, step, evidence.quote(last), confidence="medium")


def _explain_wait(evidence: Evidence, entry: EntryView, command: str, wait: Wait) -> Diagnosis:
    step, quotes = _name_documented_answer(evidence, entry, wait)
    if _ended_by_itself(evidence, entry):
        cause = f"{_describe_start(evidence, entry)}, because nobody is at its terminal: called like this, "
        cause += f"{_WAITS.split(wait.why)[0]}."
        return diagnosis(KIND, cause, _without_stop(step), evidence.quote(entry), *quotes, check=_CHECK_ASKED)
    cause = f"{_describe_start(evidence, entry)}: {wait.why}."
    if wait.why == _SERVER and entry.status != "open":
        cause = f"{code(command, 100)}{start_clause(entry)} was stopped at a time limit: {_SERVER}."
    return diagnosis(KIND, cause, step, *quotes, evidence.quote(entry, command), check=_CHECK)


def _name_documented_answer(evidence: Evidence, entry: EntryView, wait: Wait) -> tuple[str, list[Quote]]:
    """Return the step for a call that waits, with the option or the file that a document of the record names for it."""
    if wait.secret and (file := find_password_file(evidence, entry)) is not None:
        given = code(wait.secret.replace("{0}", file.name), 80)
        said = f"Stop it and let it read the password from the file that {evidence.source(file.entry)} names for it: {given}."
        return said, [evidence.quote(file.entry, file.line)]
    if wait.why not in (_SERVER, _INPUT) and (option := find_documented_option(evidence, entry)) is not None:
        said = f"{wait.step} {capital(evidence.source(option.entry))} runs it with {code(option.name, 50)}."
        return said, [evidence.quote(option.entry, option.line)]
    return wait.step, []


def _diagnose_documented_option(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which option, of those that keep a program from asking, a document shows with it and a call lacks."""
    option = find_documented_option(evidence, entry)
    if option is None:
        return None
    source, name = evidence.source(option.entry), code(option.name, 50)
    cause = (
        f"{_describe_start(evidence, entry)}. {capital(source)} runs this program with {name}, which this call lacks: without"
        " it, it most likely asks something, and nobody answers."
    )
    step = f"Stop it and run it with {name}, as {source} says, if what it would ask is what the user wants."
    return diagnosis(
        KIND, cause, step, evidence.quote(option.entry, option.line), evidence.quote(entry, command_of(entry)), check=_CHECK,
        confidence="medium",
    )  # fmt: skip


_WAITS = lazy_pattern(r",? and (?:waits|nobody)")
_STOP = lazy_pattern(r"^Stop it(?: and|[.,]) ")
_CHECK_ASKED = "It must end without asking anybody."


def _without_stop(step: str) -> str:
    """Return a step for a call that has ended, so that nothing is left to stop."""
    return capital(_STOP.sub("", step))


def _describe_start(evidence: Evidence, entry: EntryView, room: int = 100) -> str:
    """Return which call does not return, and since when, as the beginning of a sentence."""
    if _ended_by_itself(evidence, entry):
        return f"{call_phrase(entry, room, 'Your')} fails{how_often(evidence.times(entry))}"
    end = "has not returned" if entry.status == "open" else "did not return by itself"
    return f"{call_phrase(entry, room, 'Your')}{start_clause(entry)} {end}"
