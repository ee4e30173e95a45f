"""The battery for stores catches stores that break one promise each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.conformance import StoreConformance
from ctxmgr.store import Store, open_store
from tests.conformance.mutants import MUTANTS


class Battery(StoreConformance):
    """The battery over a database."""

    __test__ = False

    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open a SQLite file."""
        return open_store(str(folder / "history.db"), create=create, readonly=readonly)


def failures(folder: Path) -> Iterator[str]:
    """Yield the names of the tests of the battery that fail, one folder each."""
    for name, test in inspect.getmembers(Battery, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        place = folder / name
        place.mkdir()
        battery = Battery()
        opened = battery.open(place, create=True)
        given = {"opened": opened, "tmp_path": place}
        try:
            test(battery, **{key: given[key] for key in list(inspect.signature(test).parameters)[1:]})
        except (Exception, pytest.fail.Exception):
            yield name
        finally:
            opened.close()


@pytest.mark.slow
def test_a_sound_store_passes(tmp_path: Path) -> None:
    """Without a mutant nothing fails."""
    assert list(failures(tmp_path)) == []


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_battery_catches_it(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is wrong in this one way fails at least one test."""
    MUTANTS[mutant](monkeypatch)
    assert next(failures(tmp_path), None) is not None
