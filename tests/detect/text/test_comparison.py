"""What is said is compared and read late, and all the same as if each word of it had been read at once."""

from __future__ import annotations

import random
import re

import pytest

from ctxmgr.detect.detectors import messages
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.text.comparison import MessageText, gist, plain
from ctxmgr.types.finding import Finding, Observation
from tests.detect.scenario import Scenario

_PARTS = (
    "I will read the file again. ", "ok. ", "Ha!", "ha! ", "- an item\n", "1) numbered\n", "```\ncode = 1\n```\n", "~~~\n",
    "| a | b |\n", "\n\n", "   indented.\n", " . . ", "<900 characters of text>. ", "no 9 chars here. ", "abcabcabc", "ΑΣ.Abc ",
    "ΣΑΣ. ", "日本。", "\t", "    four\n", ".  X", " \x1c.\x85 z", "word " * 45, "…",
)  # fmt: skip
_KINDS = ("message", "message", "thought", "agent_message_chunk")


def _text(chance: random.Random) -> str:
    parts = [chance.choice(_PARTS) for _ in range(chance.choice((1, 2, 3, 12)))]
    return "".join(parts) * chance.choice((1, 1, 2, 10, 11, 30))


def _found(seed: int) -> list[Finding]:
    chance, story = random.Random(seed), Scenario()
    for _ in range(30):
        if chance.random() < 0.1:
            story.call("Read", {"path": "a"}, "text")
        story.say(chance.choice(_KINDS), {"text": _text(chance)}, agent="main", wait=chance.choice((1, 20)))
    return [each for _, each in story.watched(DetectSettings(volume_chars=900, volume_seconds=30.0, chant_rounds=5))[1]]


@pytest.mark.slow
def test_messages_that_are_read_late_show_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message whose end shows that nothing is chanted in it need not be read, for nothing that is found depends on it."""
    late = [_found(seed) for seed in range(40)]
    assert {each.kind for found in late for each in found} >= {"chanting"}
    free = "_holds_no_chant"
    monkeypatch.setattr(messages, free, lambda text, rounds: False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert [_found(seed) for seed in range(40)] == late


def test_phrases_end_behind_marks_and_lines() -> None:
    """A phrase ends behind a mark that a blank or a capital follows, and at line ends; nothing of the text is lost."""
    chance, obvious = random.Random(5), re.compile(r"(?<=[.!?…。！？])(?=[\sA-Z])|(?<=\n)")
    phrases = getattr(messages, "_split_phrases")  # noqa: B009 - what is the module's own is looked at on purpose
    for _ in range(5000):
        text = "".join(chance.choice(".!?…。 \n\t\x1c\x85AaBé") for _ in range(chance.randrange(14)))
        whole, rest = phrases(text)
        assert [*whole, rest] == obvious.split(text)
    assert phrases("1. One thing. 2. Two") == (["1. One thing.", " 2. Two"][:1], " 2. Two")


@pytest.mark.slow
def test_sayings_are_equal_where_their_words_are() -> None:
    """Two texts are the same if they differ in case and blanks alone, at whatever length the difference shows."""
    chance = random.Random(7)
    said = Observation("event", 0, "v0", "s")
    texts = ["", " ", "A", "a  b", "A b", "ΑΣ", "ας", "ασ", *(_text(chance) for _ in range(60))]
    texts += [text.upper() for text in texts] + [text.replace(" ", "  ") for text in texts] + ["x " * 60 + "y", "x " * 60 + "z"]
    for one in texts:
        for two in texts:
            assert (MessageText(said, one) == MessageText(said, two)) is (plain(one) == plain(two))


def test_forms_of_a_word_are_one_word() -> None:
    """What is said once with "retries" and once with "retrying" says the same; other words do not."""
    assert gist("Retrying the failed uploads") == gist("retries of a failing upload")
    assert gist("the upload") != gist("the download")
