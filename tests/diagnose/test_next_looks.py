"""Where to look next when the record holds no cause."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import contrast, diagnose
from tests.diagnose.build import Call, evidence


def test_a_log_that_was_read_is_gone_by() -> None:
    """Its error is named, and nobody is sent to read it."""
    log = Call("tail_logs", {"service": "api"}, "ERROR: column p.locale does not exist\n  Position: 31")
    told = contrast(
        evidence(log, *[Call("http_get", {"path": "/api/payslips"}, "HTTP/1.1 500 Internal Server Error", "error")] * 3)
    )

    assert told is not None
    assert "column p.locale does not exist" in told.next_step
    assert "Only the log" not in told.next_step


def _step(action: str, given: dict[str, str], said: str) -> str:
    known = evidence(*[Call(action, given, said)] * 4)
    told = diagnose(known) or contrast(known)
    assert told is not None
    return told.next_step


def test_an_answer_that_is_submitted_is_no_page() -> None:
    """Its tool judges it, so there is no element to look at."""
    assert "page" not in _step("submit", {"answer": "42"}, "Incorrect answer.")
    assert "Do not give that answer again" in _step("submit", {"answer": "42"}, "Incorrect answer.")
    assert "page itself" in _step("browser_submit", {"ref": "e7"}, "Nothing came up")


def test_a_look_up_is_no_poll() -> None:
    """Nothing works behind a look-up, so its answer stays; behind a job, something does."""
    assert "as it is" in _step("find_open_invoices", {"customer": "C7"}, "The customer has no open invoices.")
    assert "worker or job" in _step("get_job_status", {"job": "C7"}, "state: queued")


def test_a_program_is_not_found_in_the_words_of_another() -> None:
    """The word stands in a text that the command is given."""
    assert "make V=1" not in _step("Bash", {"command": "say 'we make it'"}, "done")


def test_a_short_output_is_read_as_it_is() -> None:
    """Its first and its last characters are the same, and no word of both."""
    assert "memory" in _step("Bash", {"command": "./run"}, "Exit code 1\nSIGKILL")
    found = contrast(evidence(*[Call("query", {"sql": "select 1 from a where b"}, "0 rows")] * 4))

    assert found is not None
    assert "condition" in found.next_step


@pytest.mark.parametrize("call", [Call("Grep", {"pattern": "retries", "path": "src"}), Call("Glob", {"pattern": "**/a.yaml"})])
def test_a_search_in_vain_has_no_process_behind_it(call: Call) -> None:
    """What is looked for may have another name or place."""
    told = contrast(evidence(*[call._replace(output="No matches found")] * 4))

    assert told is not None
    assert "List the folder" in told.next_step
    assert ("of `retries` in src" in told.cause) == (call.action == "Grep")


def test_a_state_that_no_change_has_changed_depends_on_something_else() -> None:
    """A phone has no worker behind it whose log could be read."""
    changes = [Call(name, {}, "done") for name in ("toggle_wifi", "reset_apn", "reboot_device", "zorgify")]
    asked = Call("can_send_mms", {}, "Your app can't send MMS.")
    told = contrast(evidence(*[step for each in changes for step in (asked, each)], asked))

    assert told is not None
    assert "on what else it depends" in told.next_step
    assert "worker" not in told.next_step


def test_a_look_that_showed_a_fault_is_made_again_after_a_change() -> None:
    """The repeated answer tells an effect; another look told of a fault, and nobody looked again since."""
    status, card = Call("check_status_bar", {}, "No signal"), Call("check_sim", {}, "No SIM card detected")
    told = contrast(evidence(status, card, Call("reseat_sim", {}, "done"), status, Call("reboot_device", {}, "done"), status))

    assert told is not None
    assert "your check_sim call at 10:00 again: it showed what may be a fault" in told.next_step
    assert any("No SIM card" in quote.text for quote in told.evidence)
    fine = Call("check_sim", {}, "The card is active")
    told = contrast(
        evidence(status, card, Call("reseat_sim", {}, "done"), fine, status, Call("reboot_device", {}, "done"), status)
    )
    assert told is not None
    assert "check_sim" not in told.next_step


def test_the_states_that_a_look_showed_are_named() -> None:
    """A reader sees which ones may matter, and that nothing else is claimed of them."""
    test, network = (
        Call("run_test", {}, "no connection"),
        Call("check_network", {}, "Airplane Mode: OFF\nSignal: none\nRoaming enabled: No\nType: 5G"),
    )
    told = contrast(evidence(test, network, Call("reseat_sim", {}, "done"), test, Call("reboot_device", {}, "done"), test))

    assert told is not None
    assert "it showed `Signal: none` and `Roaming enabled: No`, and changes followed" in told.next_step
    mended = Call("set_roaming", {"on": True}, "Roaming enabled: Yes. Signal: good")
    told = contrast(evidence(test, network, mended, test, Call("reboot_device", {}, "done"), test))
    assert told is not None
    assert "check_network call at 10:00 again" not in told.next_step


@pytest.mark.parametrize(
    ("said", "verbose"),
    [
        ("dba@db: Permission denied (publickey).", True),
        ("ssh: connect to host db port 22: No route to the other side", True),
        ("lost connection", True),
        ("the ledger differs at row 14", False),
        ("activating", False),
    ],
)
def test_ssh_is_asked_for_more_only_where_it_failed_itself(said: str, verbose: bool) -> None:
    """Where the command on the other side failed, `ssh -v` has nothing to tell of it."""
    told = contrast(evidence(*[Call("bash", {"command": "ssh db ./compare.sh"}, said, "error")] * 3))

    assert told is not None
    assert ("add `-v`" in told.next_step) == verbose, told.next_step
