"""A log that is read after a failure without a reason says why."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose, explain_contrast
from tests.diagnose.build import Call, bash, evidence, failed, require_told

WHY = "Nov 05 21:06:30 shop node[229]: Error: listen EADDRINUSE: address already in use 0.0.0.0:8080"
UP = failed("ssh shop systemctl restart till-sync; ssh shop systemctl is-active till-sync", "activating")
LOG = bash("ssh shop journalctl -u till-sync -n 4 --no-pager", WHY)
JOB = Call("job.start", {"job": "nightly-import"}, {"status": "FAILED", "exitCode": 1, "job": "nightly-import"}, "error")
JOB_LOG = Call("job.log", {"job": "nightly-import", "lines": 50}, "reading orders.csv\nKeyError: 'country'")


@pytest.mark.parametrize(
    ("call", "log"),
    [
        (UP, LOG),
        (
            failed("systemctl restart till-sync", 'Job for till-sync.service failed because the control process exited.\nSee "'
                   'systemctl status till-sync.service" and "journalctl -xeu till-sync.service" for details.'),
            bash("systemctl status till-sync.service --no-pager", f"Active: failed\n{WHY}"),
        ),
        (failed("docker compose up -d api --wait", "container shop-api-1 is unhealthy"),
         bash("docker compose logs --tail 20 api", f"api-1  | {WHY}")),
        (failed("kubectl rollout status deploy/api", "error: deployment \"api\" exceeded its progress deadline"),
         bash("kubectl -n shop logs api-7d9f8b6c5d-x2k9p --previous", WHY)),
        (failed("./run.sh nightly", ""), bash("tail -n 5 /var/log/nightly.log", WHY)),
    ],
)  # fmt: skip
def test_the_reason_is_that_of_the_log(call: Call, log: Call) -> None:
    """The causes are asked about the lines of the log, and the log is what says them."""
    known = evidence(call, log, call, log, call, log)
    step = known.entries[4]
    found = known.log_of(step)

    assert found is not None
    assert found.entry is known.entries[5]
    assert "address already in use" in known.text(step)
    assert known.quote(step).source == known.source(known.entries[5])


def test_a_class_takes_the_cause_from_the_log() -> None:
    """A port that is taken is known from its words, wherever they stand."""
    require_told(evidence(UP, LOG, UP, LOG, UP, LOG), "resourceHeld", ["8080"], [])


def test_an_unknown_reason_is_told_with_the_call_that_read_it() -> None:
    """What no class knows is quoted, as the words of the log."""
    known = evidence(JOB, JOB_LOG, JOB, JOB_LOG, JOB, JOB_LOG, loop=6)
    found = explain_contrast(known)

    assert found is not None
    assert found.error is not None
    assert found.error.text.endswith("KeyError: 'country'")
    assert found.error.entry == known.entries[5].id
    assert found.says.startswith("Its log, which your job.log")


@pytest.mark.parametrize(
    ("call", "log"),
    [
        # Another service, another job.
        (UP, bash("ssh shop journalctl -u printer -n 4", WHY)),
        (JOB, JOB_LOG._replace(given={"job": "weekly-export"})),
        # The host alone is not the service.
        (UP, bash("ssh shop tail /var/log/router.log", WHY)),
        # The call says itself why it fails.
        (UP._replace(output="Exit code 1\nUnit till-sync.service has a bad setting: no such file"), LOG),
        # The log has no error, and a login is no log.
        (UP, bash("ssh shop journalctl -u till-sync -n 4", "Nov 05 shop systemd[1]: Started till sync.")),
        (JOB, JOB_LOG._replace(action="job.log_in")),
        # A reading of a log that fails is no failing service.
        (failed("grep -c till-sync till-sync.log", ""), bash("tail till-sync.log", WHY)),
    ],
)
def test_what_is_about_something_else_or_says_why_is_left_alone(call: Call, log: Call) -> None:
    """Without the same name and a failure that says nothing, a log is another record."""
    known = evidence(call, log, call, log)

    assert known.log_of(known.entries[2]) is None
    assert "in use" not in known.text(known.entries[2])


def test_a_log_that_was_read_before_the_call_says_nothing_of_it() -> None:
    """What was changed since then may have been the reason."""
    known = evidence(UP, LOG, bash("sed -i s/8080/8081/ app.env"), UP)

    assert known.log_of(known.entries[3]) is None
    found = diagnose(known)
    assert found is None or "8080" not in found.cause
