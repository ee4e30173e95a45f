"""Archives of Parquet files: read as a history, damage named by its file, and kept in a bucket through copies."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Damaged, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import open_store
from ctxmgr.store.archive.parquet import Bucket, open_archive
from ctxmgr.store.archive.retention import retain
from tests.store.archive.test_retention import bodies, chosen, story


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    """A file that is cut, changed or another program's is said by its name, and never read as an empty history."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(story("old", age=40))
    store.append(story("last", age=1))
    (file,) = retain(store, str(tmp_path / "kept"), chosen(store)).files
    whole = Path(file).read_bytes()
    for damaged in (whole[:-9], whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :], b"PAR1 nothing"):
        Path(file).write_bytes(damaged)
        with pytest.raises(Damaged, match=Path(file).name):
            open_archive(str(tmp_path / "kept"))
    store.close()


def test_what_a_bucket_refuses_stays_in_the_store(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that is not there, a service that is away: nothing is removed, the reason is said, and no key with it."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(story("old", age=40))
    store.append(story("last", age=1))
    before = bodies(store)
    for url, code in ((bucket.replace("history", "another"), "NoSuchBucket"), (bucket, "can't be used")):
        with pytest.raises(StorageFailed, match=code) as failed:
            retain(store, url, chosen(store))
        assert "secret-of-the-test" not in failed.value.message
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert bodies(store) == before
    store.close()


def test_what_a_service_keeps_otherwise_removes_nothing(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read again where it was written; one that came back otherwise is not believed."""
    import obstore

    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(story("old", age=40))
    store.append(story("last", age=1))
    before, put = bodies(store), obstore.put

    def changed(client: Any, name: str, file: Path) -> object:
        return put(client, name, file.read_bytes()[:-1] + b"?")

    monkeypatch.setattr(obstore, "put", changed)
    with pytest.raises(StorageFailed, match="does not hold what was written"):
        retain(store, bucket, chosen(store))
    assert bodies(store) == before
    store.close()


@pytest.mark.parametrize(
    "url", ["s3://", "s3://key:secret@history/kept", "s3://history/../x", "s3://history/a?b=c", "s3://History"]
)
def test_a_url_that_names_no_bucket_is_refused(url: str) -> None:
    """Keys do not stand in a URL, and nothing leads out of the bucket."""
    with pytest.raises(InvalidInput, match="names no bucket"):
        Bucket(url)


def test_other_names_in_a_bucket_become_no_paths(tmp_path: Path, bucket: str) -> None:
    """Whatever else lies in a bucket, only files of an archive are copied, and only below the folder of the copies."""
    import obstore
    from obstore.store import from_url

    client = from_url(bucket, client_options={"allow_http": True})
    for name in (
        "day=2026-01-01/x.parquet",
        "day=%2e%2e/a-1.parquet",
        "other/a-1.parquet",
        "day=x/team=y/day=z/a-1.parquet",
        "a.txt",
    ):
        obstore.put(client, name, b"PAR1")
    place = Bucket(bucket).fetch()

    copies = [path.relative_to(place).as_posix() for path in Path(place).rglob("*") if path.is_file()]
    assert copies == ["day=%2e%2e/a-1.parquet"]


def test_a_copy_is_fetched_once_and_goes_with_its_file(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is never changed, so it is fetched once; what was removed from the bucket is not read any more."""
    import obstore
    from obstore.store import from_url

    store = open_store(str(tmp_path / "history.db"), create=True)
    for session, age in (("old", 40), ("older", 90), ("last", 1)):
        store.append(story(session, age=age))
    retain(store, bucket, chosen(store))
    store.close()
    shutil.rmtree(Bucket(bucket).folder)
    open_archive(bucket).close()
    client, got = from_url(bucket, client_options={"allow_http": True}), list[str]()
    get = obstore.get

    def noted(client: Any, name: str) -> object:
        got.append(name)
        return get(client, name)

    monkeypatch.setattr(obstore, "get", noted)
    names = sorted(found["path"] for page in obstore.list(client) for found in page)

    open_archive(bucket).close()
    assert got == []
    day = names[0].partition("/")[0]
    with closing(open_archive(f"{bucket}/{day}")) as opened:
        assert [view.session for _, view in opened.sessions.page(0, None)] == ["older"]
    with closing(open_archive(f"{bucket}/{names[1]}")) as opened:
        assert [view.session for _, view in opened.sessions.page(0, None)] == ["old"]
    obstore.delete(client, names[0])
    with closing(open_archive(bucket)) as opened:
        assert [view.session for _, view in opened.sessions.page(0, None)] == ["old"]
    with pytest.raises(NotFound):
        open_archive(f"{bucket}/{day}")
