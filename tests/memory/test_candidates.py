"""Ranking and words: what is the same word, and what comes first."""

from __future__ import annotations

import pytest

from ctxmgr.memory.candidates import LexicalRanker, score
from ctxmgr.text.tokens import fold, stem, stems, terms
from ctxmgr.types.memory import Episode


def _episode(text: str, number: int = 0, ts: str | None = "2026-01-22T10:00:00Z") -> Episode:
    return Episode(id=f"n{number}", session="s", ts=ts, text=text, tags=["memory"], entries=[], indexes=[], author=None)


def _ranked(query: str, *texts: str) -> list[str]:
    made = [_episode(text, number) for number, text in enumerate(texts)]
    return [each.text for each, _ in LexicalRanker().rank(query, made)]


@pytest.mark.parametrize(
    "words",
    ["retry retries retried retrying", "deploy deploys deployed deploying deployment", "cache caches cached caching",
     "migrate migrates migrated migrating migration", "stop stops stopped stopping", "fail fails failed failing",
     "time times timed", "Straße STRASSE", "café cafe\u0301 CAFE", "ﬁle file"],
)  # fmt: skip
def test_forms_of_a_word_are_one(words: str) -> None:
    """Endings, case, accents and ligatures do not tell words apart."""
    assert len({stem(fold(word)) for word in words.split()}) == 1


@pytest.mark.parametrize("words", ["test_auth", "access axes", "status stat", "2026 2027", "use user", "thing th"])
def test_other_words_stay_others(words: str) -> None:
    """Words that only look alike, and numbers, keep apart; parts of a name are words."""
    assert len({root for word in words.split() for root in stems(word)}) == 2


def test_every_text_with_the_word_holds_its_needle() -> None:
    """What the candidates are found by is a part of every form of the word, so that none is missed."""
    for forms in ("retry retries retried", "migration migrating", "timed times", "running run", "happy happily happier"):
        for asked in forms.split():
            (term,) = terms(asked)
            assert all(term.count(form) for form in forms.split() if stem(form) == term.stem)


def test_a_rare_word_beats_a_common_one() -> None:
    """Of two words of a query the one that fewer episodes hold decides."""
    assert _ranked("deploy zookeeper", "deploy", "deploy slow", "zookeeper", "deploy again")[0] == "zookeeper"


def test_more_words_of_the_query_beat_more_of_one() -> None:
    """An episode that holds both words comes before one that repeats one of them."""
    texts = ("timeout timeout timeout timeout", "deploy timeout", "deploy deploy deploy deploy", "something else")
    assert _ranked("deploy timeout", *texts)[0] == "deploy timeout"


def test_absent_words_find_nothing_and_cost_nothing() -> None:
    """A word that no episode holds changes neither what is found nor its order."""
    texts = ("deploy by rsync", "rsync is slow", "unrelated")

    assert _ranked("nowhere", *texts) == []
    assert _ranked("rsync deploy nowhere", *texts) == _ranked("rsync deploy", *texts) == ["deploy by rsync", "rsync is slow"]


def test_the_newer_comes_first_among_equals() -> None:
    """Equal scores are told apart by time, and what has none comes last."""
    times = ["2026-01-22T10:00:00Z", None, "2026-01-22T12:00:00+01:00", "2026-01-22T10:30:00Z", "not a time"]
    made = [_episode("deploy", number, ts) for number, ts in enumerate(times)]

    assert [each.id for each, _ in LexicalRanker().rank("deploy", made)] == ["n2", "n3", "n0", "n4", "n1"]


def test_whole_words_beat_parts() -> None:
    """A word found inside another one counts, but less; a short one does not count there at all."""
    assert _ranked("auth", "unauthorized access", "the auth step") == ["the auth step", "unauthorized access"]
    assert _ranked("in", "nothing inside", "is it in") == ["is it in"]
    assert _ranked("service", "AuthService broke", "no such thing") == ["AuthService broke"]


def test_empty_words_do_not_drown_the_others() -> None:
    """Words that every text holds are passed over when the query says more, and are searched for when it does not."""
    assert _ranked("what do we know about the deploy", "we know what we do", "deploy") == ["deploy", "we know what we do"]
    assert _ranked("the", "the one", "none") == ["the one"]


@pytest.mark.parametrize(
    ("query", "text"),
    [("数据库", "连接数据库超时"), ("한글", "한글을 쓴다"), ("हिन्दी", "यह हिन्दी है"), ("%", "100% sure"), ("😀", "all good 😀"),
     ("'); --", "x'); -- y"), ("ударение", "УДАРЕ́НИЕ есть")],
)  # fmt: skip
def test_any_script_and_any_sign_is_found(query: str, text: str) -> None:
    """Scripts without blanks, with marks, and signs that are no words are found as they stand."""
    assert _ranked(query, text, "other words") == [text]


def test_a_long_query_is_bounded() -> None:
    """A query of a megabyte comes down to its first words."""
    assert len(terms(" ".join(f"word{number}" for number in range(150_000)))) == 32
    assert terms("\0 \n") == []
    assert terms("a" + "\u0591\u05b0" * 400_000) != []


@pytest.mark.parametrize(
    ("count", "length", "expected"),
    [
        (1.0, 1.0, 1.0),
        (4.0, 1.0, 8.8 / 5.2),
        (1.0, 2.0, 2.2 / 2.68),
        (1.0, 0.5, 2.2 / 1.96),
        (0.3, 1.0, 0.66 / 1.5),
        (0.0, 1.0, 0.0),
    ],
)
def test_the_score_is_that_of_bm25(count: float, length: float, expected: float) -> None:
    """k1 is 1.2 and b is 0.4: a fourth occurrence counts little, and so does a text of twice the length."""
    assert score([count], [1.0], length) == pytest.approx(expected)


def test_a_part_of_a_word_counts_three_tenths() -> None:
    """An occurrence inside a longer word counts 0.3 of a whole word, and adds to one."""
    (whole,), (part,) = (LexicalRanker({"auth": 1.0}).rank("auth", [_episode(text)]) for text in ("auth here", "oauth here"))

    assert whole[1] == pytest.approx(1.0)
    assert part[1] == pytest.approx(0.66 / 1.5, abs=1e-6)
