"""Thresholds are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.detect.settings import MAX_CHANT_ROUNDS, DetectSettings
from ctxmgr.errors import InvalidInput
from tests.detect.scenario import Scenario


@pytest.mark.parametrize(
    "odd",
    [
        {"repeat_rounds": 1},
        {"cycle_rounds": 0},
        {"max_period": 1},
        {"window": 35},
        {"window": 64, "repeat_rounds": 65},
        {"stall_seconds": 0.0},
        {"call_seconds": float("nan")},
        {"poll_gap": float("inf")},
        {"left_after": 0},
        {"call_grace": -1.0},
        {"chant_rounds": 133},
        {"window": 64, "compaction_rounds": 65},
    ],
)
def test_a_threshold_that_can_never_fire_is_refused(odd: dict[str, Any]) -> None:
    """Neither a window shorter than its thresholds nor a nonsense number gets as far as a run."""
    with pytest.raises(InvalidInput):
        DetectSettings(**odd)


def test_the_highest_number_of_chants_can_be_reached() -> None:
    """A phrase that is said as often as the highest threshold wants is found."""
    story = Scenario()
    story.say("message", {"text": "I will look into it once more now.\n" * MAX_CHANT_ROUNDS}, agent="main")
    assert [finding.kind for finding in story.found(DetectSettings(chant_rounds=MAX_CHANT_ROUNDS))] == ["chanting"]


@pytest.mark.requirement("FR-001")
def test_the_defaults_follow_the_rulings() -> None:
    """A loop is found at the third round, a stall after two minutes, a call after ten."""
    settings = DetectSettings()
    assert (settings.repeat_rounds, settings.cycle_rounds) == (3, 3)
    assert (settings.stall_seconds, settings.call_seconds) == (120, 600)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"repeat_rounds": "three"}, "repeat_rounds must be a whole number"),
        ({"repeat_rounds": True}, "repeat_rounds must be a whole number"),
        ({"stall_seconds": []}, "stall_seconds must be a number"),
        ({"pollers": "wait"}, "pollers must be a list of names"),
        ({"pollers": [1]}, "pollers must be a list of names"),
        ({"nonsense": 1}, "unknown setting 'nonsense' for detection"),
    ],
)
def test_a_wrong_setting_is_named(table: dict[str, object], message: str) -> None:
    """A configuration table with an unknown setting or a value of the wrong type is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        DetectSettings.from_table(table)


def test_settings_come_from_a_table() -> None:
    """Numbers and lists of a configuration file become settings; the rest keeps its default."""
    settings = DetectSettings.from_table({"stall_seconds": 30, "pollers": ["wait"]})

    assert (settings.stall_seconds, settings.pollers, settings.repeat_rounds) == (30, frozenset({"wait"}), 3)
