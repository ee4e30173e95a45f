"""A service that speaks S3 on loopback, for the archives in a bucket: moto's server, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

BUCKET = "history"

_SERVE = f"""
import sys, urllib.request
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
place = "http://%s:%d" % server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(place + "/{BUCKET}", method="PUT"))
print(place, flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def serving() -> Generator[dict[str, str]]:
    """Run the service while the context lasts; yield the variables by which a client finds it."""
    command = [sys.executable, "-W", "ignore", "-c", _SERVE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            place = server.stdout.readline().strip()
            assert place, "moto's server did not start"
            yield {
                "AWS_ENDPOINT_URL": place, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
            }  # fmt: skip
        finally:
            server.kill()
