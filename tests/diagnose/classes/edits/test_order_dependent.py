"""A test that passes alone and fails in the full run."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.edits.check_unaffected import KIND
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, edit, evidence, failed, require_told

HOLIDAY = bash(
    "tail -n +1 tests/test_cart.py tests/test_holiday.py",
    "==> tests/test_cart.py <==\nfrom shop.cart import gross\n\n==> tests/test_holiday.py <==\nfrom shop import rates\n\n"
    "def test_holiday():\n    rates.RATES.update({'DE': 16})\n    assert rates.rate('DE') == 16",
)
TESTS = bash("cat tests/test_rates.py", "from shop.rates import rate\n\ndef test_fr():\n    assert rate('FR') == 20")
ALONE = bash("pytest tests/test_rates.py", "2 passed in 1.8s")
FULL = failed("pytest", "FAILED tests/test_rates.py::test_fr - AssertionError: assert 17 == 20\n1 failed, 5 passed in 1.70s")


def runs(*between: Call, alone: Call = ALONE, full: Call = FULL, shown: Call = HOLIDAY) -> Evidence:
    """Return full runs that fail, with a run of one file before the last of them."""
    return evidence(shown, TESTS, full, full, alone, *between, full)


def test_the_line_that_leaves_something_behind_is_named() -> None:
    """The other test writes to an object that the failing test imports."""
    require_told(
        runs(),
        KIND,
        ["leaves something behind", "tests/test_holiday.py", "rates.RATES.update("],
        ["rates.RATES", "monkeypatch"],
    )


@pytest.mark.parametrize(
    ("alone", "full"),
    [
        (ALONE, FULL),
        (bash("pytest -k test_fr", "1 passed"), FULL),
        (bash("pytest -x tests/test_rates.py 2>&1 | tail -3", "2 passed"), failed("pytest -q | tail -9", FULL.output)),
        (
            bash("go test -run TestFR ./rates", "ok  \tshop/rates\t0.01s"),
            failed("go test ./...", "--- FAIL: TestFR (0.00s)\nFAIL\tshop/rates\t0.02s"),
        ),
    ],
)
def test_without_such_a_line_the_search_for_it_is_told(alone: Call, full: Call) -> None:
    """Files, names and other runners; the record shows no other test."""
    require_told(runs(alone=alone, full=full, shown=bash("ls", "tests")), KIND, ["leaves something behind"], ["halve again"])


RESTORES = bash(
    "cat tests/test_holiday.py",
    "from shop import rates\n\ndef test_holiday():\n    old = dict(rates.RATES)\n    try:\n"
    "        rates.RATES.update({'DE': 16})\n    finally:\n        rates.RATES.update(old)",
)


@pytest.mark.parametrize(
    "shown", [RESTORES, bash("cat tests/test_mail.py", "from shop import mail\n\ndef test_mail():\n    mail.BOX.append('a')")]
)
def test_a_test_that_restores_or_writes_elsewhere_is_not_named(shown: Call) -> None:
    """What is put back, or is none of what the failing tests use, is no cause."""
    found = diagnose(runs(shown=shown))

    assert found is not None
    assert "tests/test_holiday.py" not in found.cause
    assert "tests/test_mail.py" not in found.cause


@pytest.mark.parametrize(
    "known",
    [
        # Something was changed in between.
        evidence(ALONE, edit("shop/rates.py", "20", "17"), FULL, FULL, FULL),
        # It fails alone as well.
        runs(alone=failed("pytest tests/test_rates.py", "FAILED tests/test_rates.py::test_fr - assert 17 == 20")),
        # No test ran.
        runs(alone=bash("pytest tests/test_rates.py -k nothing", "no tests ran in 0.01s")),
        # Another test passes alone.
        runs(alone=bash("pytest tests/test_cart.py", "2 passed in 1.8s")),
        # Tests run beside each other.
        runs(
            full=failed("pytest -n 4", "FAILED tests/test_rates.py::test_fr - assert 17 == 20"),
            alone=bash("pytest tests/test_rates.py", "2 passed"),
        ),
        # Another folder.
        runs(alone=bash("cd ../copy && pytest tests/test_rates.py", "2 passed in 1.8s")),
        # Another setting.
        runs(alone=bash("RATES=a pytest tests/test_rates.py", "2 passed in 1.8s")),
    ],
)
def test_other_differences_are_no_order(known: Evidence) -> None:
    """Near misses of a test that depends on others."""
    found = diagnose(known)

    assert found is None or "leaves something behind" not in found.cause


ARCHIVE = (
    "import decimal\n\nfrom shop.rates import rate\n\ndef test_up():\n    decimal.getcontext().rounding = decimal.ROUND_UP\n"
)
ZONES = "import pytest\nfrom shop import zones\n\ndef test_zone():\n    assert zones.price() > 0\n"
CODE = bash(
    "cat shop/rates.py", "from decimal import Decimal\n\ndef rate(c):\n    return Decimal(c).quantize(Decimal('0.01'))\n"
)


def test_a_line_is_attributed_to_its_file_where_several_are_printed_at_once() -> None:
    """Each file begins with its imports."""
    shown = bash("cat tests/test_archive.py tests/test_zones.py", ARCHIVE + ZONES)

    require_told(
        evidence(CODE, shown, TESTS, FULL, FULL, ALONE, FULL),
        KIND,
        ["`tests/test_archive.py`", "decimal.getcontext().rounding = decimal.ROUND_UP"],
        ["decimal.getcontext().rounding"],
    )


@pytest.mark.parametrize(
    "said", [ARCHIVE + ZONES.replace("import", "# import").replace("from", "# from"), ZONES + ARCHIVE + ZONES]
)
def test_files_that_cannot_be_told_apart_are_not_named(said: str) -> None:
    """One file without imports, and a text of more parts than there are files."""
    found = diagnose(
        evidence(CODE, bash("cat tests/test_archive.py tests/test_zones.py", said), TESTS, FULL, FULL, ALONE, FULL)
    )

    assert found is not None
    assert "test_archive" not in found.cause
    assert "test_zones" not in found.cause


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 -m pytest -q 2>&1 | tail -12", "python3 -m pytest OTHERS"),
        ("cd app && uv run pytest -q | grep FAILED", "uv run pytest OTHERS"),
        ("pytest", "`pytest OTHERS"),
    ],
)
def test_the_command_of_the_search_is_the_test_program(command: str, words: str) -> None:
    """A filter behind it is none."""
    full = failed(command, FULL.output)
    alone = bash(command.replace("pytest", "pytest tests/test_rates.py"), "2 passed in 1.8s")

    require_told(runs(alone=alone, full=full, shown=bash("ls", "tests")), KIND, ["leaves something behind"], [words])
