"""Archives in a bucket of S3, or of a service that speaks its protocol: ``s3://BUCKET/PREFIX``.

The files of an archive are written once and never changed, and their names tell what they hold. So the bucket is read through
copies in the cache folder, which are fetched once. obstore speaks to the service, in an extra: ``pip install
'ctxmgr-cli[s3]'``. Keys, region and endpoint come from the variables that its own tools take (``AWS_ACCESS_KEY_ID``,
``AWS_REGION``, ``AWS_ENDPOINT_URL``, ...); without any, from the identity of the machine.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ctxmgr.base.paths import make_private_folder, open_regular, user_folder
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.log import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEME = "s3://"

_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._=+:~-]+)*/?")
_FOLDER = r"(?:team|day)=[A-Za-z0-9._~:+%-]{1,200}"
_NAME = re.compile(rf"(?:{_FOLDER}/){{0,2}}[A-Za-z0-9_-]{{1,200}}-[0-9]{{1,15}}\.parquet")
"""What an archive's file is called; what else lies in a bucket is left alone, and never becomes a path here."""

_SERVICE_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_REMEDY = "check the bucket, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"


def is_bucket(location: str) -> bool:
    """Whether a location is in a bucket."""
    return location.startswith(SCHEME)


class Bucket:
    """An archive in a bucket.

    Args:
        url: ``s3://BUCKET/PREFIX``.

    Attributes:
        folder: of the copies on this machine, laid out as the archive is.
        drafts: for files that are not in the bucket yet.

    Raises:
        InvalidInput: the URL names no bucket, or obstore is not installed.
    """

    def __init__(self, url: str) -> None:
        if _URL.fullmatch(url) is None:
            raise InvalidInput(
                f"{url} names no bucket", "write s3://BUCKET/PREFIX; keys stand in AWS_ACCESS_KEY_ID and the like"
            )
        self._url = url.rstrip("/")
        self._client: Any = None
        cache = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", "archive")
        # Two services may each have a bucket of this name, so the service is a part of the folder's name.
        service = os.environ.get("AWS_ENDPOINT_URL", "")
        self.folder = os.path.join(cache, f"bucket-{codec.digest(f'{service} {self._url}'.encode())[:32]}")
        self.drafts = os.path.join(self.folder, ".drafts")
        self._connect()

    def _connect(self) -> None:
        try:
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise InvalidInput("archives at s3:// need obstore", "pip install 'ctxmgr-cli[s3]'") from None
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes")
        try:
            self._client = from_url(
                self._url,
                client_options={"allow_http": plain, "connect_timeout": "5s", "timeout": "120s"},
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
            )
        except _faults() as error:
            self._failed(error)

    def _failed(self, error: Exception) -> NoReturn:
        code = _SERVICE_CODE.search(str(error))
        reason = code[1] if code is not None else str(error).splitlines()[0].rpartition(": ")[2][:200]
        raise StorageFailed(f"{self._url} can't be used: {reason}", _REMEDY) from None

    def fetch(self, within: str = "") -> str:
        """Copy what is new in the bucket, and remove copies of what is gone; return the place of the copies.

        Args:
            within: a folder or a file of the archive; all of it otherwise.

        Raises:
            StorageFailed: the bucket can't be read, or the cache folder not be written.
        """
        there = dict(self._listed(within))
        try:
            # A file that was deleted in the bucket must not go on being read here.
            for name in set(_copies(self.folder)) - there.keys():
                if not within or name == within or name.startswith(f"{within}/"):
                    os.unlink(os.path.join(self.folder, name))
            for name, size in sorted(there.items()):
                path = os.path.join(self.folder, name)
                if not (os.path.isfile(path) and os.path.getsize(path) == size):
                    self._copy(name, path)
        except OSError as error:
            raise StorageFailed(f"can't write {self.folder}: {error.strerror}", "free space in the cache folder") from None
        return os.path.join(self.folder, within) if within else self.folder

    def _listed(self, within: str) -> Iterator[tuple[str, int]]:
        """Yield name and size of the archive's files in the bucket."""
        import obstore

        try:
            if within.endswith(".parquet"):
                yield within, int(obstore.head(self._client, within)["size"])
                return
            for page in obstore.list(self._client, within or None):
                for found in page:
                    if _NAME.fullmatch(found["path"]) is not None:
                        yield found["path"], int(found["size"])
        except FileNotFoundError:
            return
        except _faults() as error:
            self._failed(error)

    def _copy(self, name: str, path: str) -> None:
        import obstore

        make_private_folder(os.path.dirname(path))
        # Under its own name a copy appears only when it is whole: other processes read the folder at the same time.
        draft = f"{path}.{os.getpid()}.part"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as stream:
                for piece in obstore.get(self._client, name).stream():
                    stream.write(piece)
            os.replace(draft, path)
        except _faults() as error:
            self._failed(error)
        finally:
            if os.path.exists(draft):
                os.unlink(draft)

    def put(self, draft: str, folder: str) -> str:
        """Write a file into a folder of the archive, and read it there again; return the path of its copy.

        Raises:
            StorageFailed: it can't be written, or is not what was written.
        """
        import obstore

        name = f"{folder}/{os.path.basename(draft)}"
        try:
            obstore.put(self._client, name, Path(draft))
            there = sha256()
            for piece in obstore.get(self._client, name).stream():
                there.update(piece)
        except (FileNotFoundError, *_faults()) as error:
            self._failed(error)
        with open(open_regular(draft), "rb") as stream:
            here = sha256(stream.read())
        # Only what the service gives back counts as written: what it holds is removed from the store next.
        if here.digest() != there.digest():
            raise StorageFailed(f"{self._url}/{name} does not hold what was written to it", "nothing was removed; try again")
        path = os.path.join(self.folder, name)
        make_private_folder(os.path.dirname(path))
        os.replace(draft, path)
        return path


def local_copy(location: str) -> str:
    """Return where an archive, a folder of it or one of its files can be read: itself, or the copy of what is in a bucket.

    Raises:
        InvalidInput, StorageFailed: the bucket can't be read.
        NotFound: nothing is there.
    """
    if not is_bucket(location):
        return os.path.realpath(location)
    within: list[str] = []
    url = location.rstrip("/")
    # What is called like a folder or a file of an archive is a part of one, whose prefix stands before it.
    while re.fullmatch(rf"{_FOLDER}|[^/]+\.parquet", url.rpartition("/")[2]):
        url, _, last = url.rpartition("/")
        within.insert(0, last)
    place = Bucket(url).fetch("/".join(within))
    if not os.path.exists(place):
        raise NotFound(f"no archive at {location}", "check the bucket and the prefix")
    return place


def _copies(folder: str) -> Iterator[str]:
    """Yield the names of the files that were copied."""
    for path in Path(folder).rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if _NAME.fullmatch(name) is not None:
            yield name


def _faults() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError

    return (BaseError,)
