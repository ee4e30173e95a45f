"""One recovery at a time, and not for ever: the lease, the cap on attempts, the refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import AttemptsUsedUp, CtxmgrError, NoHistory, NotFound, NotStuck, RecoveryRefused
from ctxmgr.recover.answer.draft import Draft
from ctxmgr.recover.recovery import Consult
from ctxmgr.recover.service import Service
from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import DetectRequest, ModelRequest
from tests.builders import event
from tests.recover.runs import again, ask, call, chain, cycle, hung, looped, recover, went_on, workspace

NOW = 1_800_000_000.0


@pytest.fixture
def clocked(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the store with a looping history and a clock that stands still."""
    store.append(looped())
    monkeypatch.setattr(store, "clock", lambda: NOW)
    return store


@pytest.mark.requirement("EC-2", "R-11", "SC-007")
def test_a_running_recovery_is_not_joined(clocked: Store) -> None:
    """While another recovery of the session runs, a second is refused, told until when, and writes nothing."""
    before = clocked.sessions.view(1)
    assert clocked.leases.take("cycle", "somebody", NOW, 60)
    with pytest.raises(RecoveryRefused) as caught:
        recover(clocked)
    with pytest.raises(RecoveryRefused):
        ask(clocked, requester="coder")

    assert "2027-01-15T08:01:00" in str(caught.value.hint)
    assert clocked.sessions.view(1) == before


def test_planning_needs_no_lease(clocked: Store) -> None:
    """A plan can be looked at while a recovery runs."""
    assert clocked.leases.take("cycle", "somebody", NOW, 60)

    assert recover(clocked, plan=True).target == "coder"


def test_another_session_is_free(clocked: Store) -> None:
    """A lease is of one session."""
    clocked.append(hung())
    assert clocked.leases.take("cycle", "somebody", NOW, 60)

    assert recover(clocked, session="hung").target == "coder"


@pytest.mark.requirement("EC-2", "R-11")
def test_a_lease_survives_reopening(store_path: Path) -> None:
    """The lease is kept with the history: a recovery that crashed blocks the next process too, until it ends."""
    first = open_store(str(store_path), create=True)
    first.append(looped())
    assert first.leases.take("cycle", "crashed", first.clock(), 60)
    first.close()
    second = open_store(str(store_path))
    with pytest.raises(RecoveryRefused):
        recover(second)
    assert second.leases.take("cycle", "later", second.clock() + 61, 60)
    second.leases.release("cycle", "later")
    assert recover(second).attempts == 1
    second.close()


@pytest.mark.requirement("R-11")
@pytest.mark.parametrize(
    ("later", "refused"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(59.9, True, id="just before it ends"),
        pytest.param(60, False, id="when it has ended"),
        pytest.param(10**9, False, id="clock set forward"),
        pytest.param(-60, True, id="clock set back a little"),
        pytest.param(-(10**6), False, id="clock set back far"),
    ],
)
def test_a_lease_ends_by_itself(clocked: Store, monkeypatch: pytest.MonkeyPatch, later: float, refused: bool) -> None:
    """A lease ends on time, and a clock that was changed can't make it hold for ever."""
    assert clocked.leases.take("cycle", "crashed", NOW, 60)
    monkeypatch.setattr(clocked, "clock", lambda: NOW + later)
    if refused:
        with pytest.raises(RecoveryRefused):
            recover(clocked)
    else:
        assert recover(clocked).target == "coder"


@pytest.mark.cases(1)
@pytest.mark.parametrize(("seconds", "taken"), [(None, 55.0), (200.0, 210.0), (600.0, 599.0)])
def test_a_lease_lasts_as_long_as_a_slow_model_may(
    clocked: Store, monkeypatch: pytest.MonkeyPatch, seconds: float | None, taken: float
) -> None:
    """A model that takes all the time that it was given is not too late: the lease of its recovery ends after that."""

    def slow(_service: Service, _wanted: ModelRequest) -> Consult:
        def ask_slowly(_draft: Draft) -> None:
            monkeypatch.setattr(clocked, "clock", lambda: NOW + taken)

        return ask_slowly

    monkeypatch.setattr(Service, "_consult", slow)

    assert recover(clocked, model=ModelRequest(name="test:slow", seconds=seconds)).target == "coder"


def test_the_lease_is_given_back(clocked: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer and after a failure the session is free again."""
    recover(clocked)
    with pytest.raises(CtxmgrError):
        recover(clocked, to=" ")
    with monkeypatch.context() as patch:
        patch.delattr("ctxmgr.recover.answer.draft.prepare_brief")
        with pytest.raises(NameError):
            again(clocked)

    assert clocked.leases.expiry("cycle", NOW) is None
    assert again(clocked).attempts == 2


@pytest.mark.requirement("EC-3", "R-11", "SC-007")
def test_attempts_are_used_up(store: Store) -> None:
    """The same loop is answered twice; then a person is needed, and nothing more is written."""
    store.append(looped())
    assert [again(store).attempts for _ in range(2)] == [1, 2]
    went_on(store)
    before = store.sessions.view(1)
    for plan in (False, True):
        with pytest.raises(AttemptsUsedUp) as caught:
            recover(store, plan=plan)
        assert "person" in str(caught.value)
        assert caught.value.hint

    assert store.sessions.view(1) == before


@pytest.mark.requirement("EC-3", "R-11")
def test_attempts_survive_reopening(store_path: Path) -> None:
    """Attempts are counted in the history, not in the process."""
    for attempt in (1, 2):
        opened = open_store(str(store_path), create=True)
        if attempt == 1:
            opened.append(looped())
        assert again(opened).attempts == attempt
        opened.close()
    opened = open_store(str(store_path))
    went_on(opened)
    with pytest.raises(AttemptsUsedUp):
        recover(opened)
    opened.close()


@pytest.mark.cases(1)
@pytest.mark.requirement("EC-3", "R-11")
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_loop_that_comes_back_is_the_same_loop(store: Store, turn: int) -> None:
    """A loop that was left and came back, begun at whatever step of its round, is counted on."""
    store.append(looped())
    assert recover(store).attempts == 1
    store.append([record for n in range(17, 22) for record in call("cycle", n, "Read", {"file_path": f"f{n}.py"}, f"text {n}")])
    store.append([event("cycle", 7, "user_message", {"text": "try again"}, after=22, agent="user")])
    assert workspace(store).detect(DetectRequest()).verdicts[0].verdict == "healthy"
    store.append(cycle(start=22, turn=turn))
    assert recover(store).attempts == 2

    with pytest.raises(AttemptsUsedUp):
        again(store)


def test_another_loop_has_its_own_count(store: Store) -> None:
    """Attempts at one loop are not held against another one of the same session."""
    store.append(looped())
    for _ in range(2):
        again(store)
    store.append([event("cycle", 7, "user_message", {"text": "leave the parser, lint"}, after=17, agent="user")])
    store.append(
        [record for n in range(17, 21) for record in call("cycle", n, "Bash", {"command": "ruff"}, error="no such tool")]
    )

    assert recover(store).attempts == 1


def test_the_configuration_sets_the_cap(store: Store) -> None:
    """How often a loop is answered is configuration."""
    from ctxmgr.types.operations import RecoverRequest

    store.append(looped())
    once = workspace(store, attempts=1)
    assert once.recover(RecoverRequest()).continuation.attempts == 1

    went_on(store)
    with pytest.raises(AttemptsUsedUp):
        once.recover(RecoverRequest())


@pytest.mark.requirement("EC-1")
def test_nothing_to_rebuild_from(store: Store) -> None:
    """An empty history, or one of messages alone, ends in "No history available"."""
    with pytest.raises(NoHistory, match="No history available"):
        recover(store)
    with pytest.raises(NoHistory, match="No history available"):
        ask(store)
    store.append([event("s", 0, "user_message", {"text": "hello"})])
    for force in (False, True):
        with pytest.raises(CtxmgrError) as caught:
            recover(store, force=force)
        assert caught.value.kind == "noHistory"  # without --force too: a run that began and did nothing is stalled


@pytest.mark.requirement("FR-017")
def test_a_healthy_session_is_left_alone(store: Store) -> None:
    """Nothing is routed automatically: without a loop or a stall a recovery is refused unless it is insisted on."""
    store.append(chain())
    with pytest.raises(NotStuck) as caught:
        recover(store)
    assert "--force" in str(caught.value.hint)

    found = recover(store, force=True)
    assert (found.loop, found.stall, found.do_not_repeat, found.alternatives) == (None, None, [], [])


def test_a_finding_can_be_chosen(store: Store) -> None:
    """One finding is chosen by its id or the start of it; a text that fits none or several is refused."""
    store.append(looped())
    finding = workspace(store).detect(DetectRequest()).verdicts[0].findings[0]
    found = recover(store, finding=finding.id[:6], plan=True)
    assert found.loop is not None
    assert found.loop.finding == finding.id

    for wrong in ("nothing", ""):
        with pytest.raises(NotFound):
            recover(store, finding=wrong)
