"""Whether a result reports a failure, whatever its status says: exit codes, refusals of servers, reports of tools."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.calls import ENDED, reports_failure
from tests.diagnose.build import Call, bash, view


def failed(call: Call) -> bool:
    """Whether a call is taken for one that failed."""
    return reports_failure(view(0, call), call.output)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("make", "make: *** [all] Error 2"),
        ("pytest -q | tail -3", "FAILED tests/test_a.py::test_one"),
        ("npm test", "npm ERR! code 1"),
        ("./run.sh; echo done", "Traceback (most recent call last)\n  x"),
        ("go test ./...", "--- FAIL: TestA"),
        ("cargo build", "error[E0308]: mismatched types"),
        ("gcc a.c", "a.c:3:5: error: expected ;"),
        ("curl -s api", "curl: (6) Could not resolve host"),
        ("curl -si api", "HTTP/1.1 404 Not Found"),
        ("curl -s -w '%{http_code}' api", "<html>no</html>503"),
        ("curl -s api", '{"error": "no such order"}'),
        ("curl -s api", '{"ok": false}'),
        ("run || true", "Process exited with code 3"),
        ("a; b", "exit code: 0\n" + "x\n" * 300 + "exit code: 1"),
        ("sort codes | uniq -c", "   12 200\n    7 503\n"),
        ("bash x.sh", "bash: line 3: foo: command not found"),
        ("edit 3:4", "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999 SyntaxError: unmatched ')'"),
    ],
)
def test_a_command_that_failed_is_known_by_what_it_prints(command: str, output: str) -> None:
    """A pipe or ``|| true`` hides the exit code; the words are those that only failures have."""
    assert failed(bash(command, output))


@pytest.mark.parametrize(
    ("output", "is_failure"),
    [
        ({"exit_code": 3, "output": "no rows loaded"}, True),
        ({"output": "no rows loaded", "metadata": {"exitCode": 3}}, True),
        ({"exit_code": 0, "output": "12 rows loaded"}, False),
        ({"output": "12 rows loaded", "metadata": ["exitCode", 3]}, False),
        ({"exit_code": True, "output": "12 rows loaded"}, False),
    ],
)
def test_an_exit_code_may_stand_in_an_object_around_the_output(output: dict[str, object], is_failure: bool) -> None:
    """The text of such a result has the output alone."""
    assert reports_failure(view(0, Call("exec", {"cmd": "./load.sh"}, output)), "rows") is is_failure


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("make", "cc -o app a.c\nno errors"),
        ("cat build.log", "error: expected ;\nTraceback (most recent call last)"),
        ("grep -n FAILED log", "12: FAILED tests/test_a.py"),
        ("git diff", "+    raise ValueError: x"),
        ("pytest -q", "12 passed in 0.3s"),
        ("pytest -q", "0 failed, 3 passed"),
        ("run", "Process exited with code 0"),
        ("a; b", "exit code: 1\n" + "x\n" * 300 + "exit code: 0"),
        ("curl -s api", '{"error":null,"orders":[]}'),
        ("curl -s api", '{"errors":[],"ok":true}'),
        ("curl -si api", "HTTP/1.1 200 OK"),
        ("sort codes | uniq -c", "   12 200\n    7 204\n"),
    ],
)
def test_a_command_that_went_well_is_left_alone(command: str, output: str) -> None:
    """What a program shows of others' failures, what is counted as none, and a last exit code of 0."""
    assert not failed(bash(command, output))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call("http_get", {"url": "x"}, '{"error": {"code": 7}}'), True),
        (Call("http_get", {"url": "x"}, '{"isError": true}'), True),
        (Call("http_get", {"url": "x"}, '{"status": "rejected"}'), True),
        (Call("http_get", {"url": "x"}, '{"detail": "must be an integer"}'), True),
        (Call("http_get", {"url": "x"}, '{"status": "running"}'), False),
        (Call("http_get", {"url": "x"}, "All is well; no error: here"), False),
        (Call("task", {"text": "x"}, "ValueError: bad value"), True),
        (Call("get_patient", {"id": "7"}, "ERROR: no such patient"), True),
        (Call("get_patient", {"id": "7"}, "errors: none"), False),
        (Call("sleep", {"seconds": 5}, "error: it still runs"), False),
        (Call("Read", {"file_path": "errors.py"}, "ValueError: bad value"), False),
    ],
)
def test_other_tools_refuse_in_forms_of_their_own(call: Call, expected: bool) -> None:
    """An answer with an error in it is a refusal; the content of a file may hold any words, and so may a wait."""
    assert failed(call) is expected


@pytest.mark.parametrize(("status", "expected"), [("error", True), ("denied", True), ("open", False), ("interrupted", False)])
def test_the_status_decides_where_it_says_something(status: str, expected: bool) -> None:
    """What failed did, whatever it printed; what has no result or was broken off reports nothing."""
    call = bash("make", "all is built")._replace(status=status)
    assert failed(call) is expected
    assert not failed(bash("make", "Traceback (most recent call last)")._replace(status="open"))


@pytest.mark.parametrize(
    ("ended", "goes_on"),
    [
        ("pod web-1 0/1 CrashLoopBackOff", "pod web-1 0/1 ContainerCreating"),
        ("status: failed", "status: running"),
        ("Exited (137) 2 minutes ago", "Exited (0) 2 minutes ago"),
        ("the import has stopped: import died", "the import goes on"),
        ("CREATE_FAILED", "CREATE_IN_PROGRESS"),
        ("exit status 1", "exit status 0"),
        ("worker was killed", "worker is busy"),
    ],
)
def test_what_will_not_go_on_is_told_from_what_does(ended: str, goes_on: str) -> None:
    """Of jobs, processes and services."""
    assert ENDED.search(ended)
    assert not ENDED.search(goes_on)


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ('{"error": "no such job"}', True),
        ('{"id": 7, "errors": ["quota"]}', True),
        ('{"id": 7, "error":null}', False),
        ('{"id": 7, "error": null}', False),
        ('{"id": 7, "error" :  null}', False),
        ('{"id": 7, "errors": [], "failed": 0}', False),
        ('{"id": 7, "errors": {}}', False),
    ],
)
def test_an_error_that_is_empty_is_none(said: str, failed: bool) -> None:
    """Many servers send the member always; with a blank before it or not, null and nothing are no failure."""
    assert reports_failure(view(1, Call("get_job", {"id": 7}, said)), said) is failed
