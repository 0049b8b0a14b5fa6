"""An S3 server that counts: requests of each kind, each answered after some ms, as a store behind a network does.

It serves the folders in a folder as buckets, which may not change meanwhile, to whoever asks: it lists in pages of a
thousand names, and gives objects or ranges of them. Signatures are not looked at.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from threading import Event, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000


@dataclass
class CountingS3:
    """A running server."""

    folder: Path
    ms: float
    port: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    """By kind: ``LIST``, ``HEAD``, ``GET``."""
    _buckets: dict[str, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._buckets = {bucket.name: _objects(bucket) for bucket in self.folder.iterdir()}

    @property
    def options(self) -> dict[str, str]:
        """The ``--storage-option`` values that reach it."""
        endpoint = f"http://127.0.0.1:{self.port}"
        return {"endpoint_override": endpoint, "access_key": "x", "secret_key": "x", "region": "us-east-1"}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                await asyncio.sleep(self.ms / 1000)
                writer.write(self._answer(method, target, headers))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, method: str, target: str, headers: dict[str, str]) -> bytes:
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if not key and method == "GET":
            self.requests["LIST"] += 1
            asked = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            return _reply(200, self._list(bucket, asked).encode())
        self.requests[method] += 1
        path = self.folder / bucket / key
        if not path.is_file():
            return _reply(404, b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
        data = path.read_bytes()
        if method == "HEAD":
            return _reply(200, b"", length=len(data))
        wanted = headers.get("range")
        if wanted is None:
            return _reply(200, data)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(data)), len(data) - 1)
        return _reply(206, data[begin : end + 1], f"Content-Range: bytes {begin}-{end}/{len(data)}\r\n")

    def _list(self, bucket: str, asked: dict[str, str]) -> str:
        """A page of names: objects, and with a delimiter what they have in common up to it."""
        objects = self._buckets.get(bucket, {})
        keys = list(objects)
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        most = int(asked.get("max-keys", PAGE))
        found: dict[str, str] = {}
        for key in keys[max(bisect_right(keys, after), bisect_left(keys, prefix)) :]:
            if not key.startswith(prefix):
                break
            folder, more, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            name = prefix + folder + delimiter if more else key
            if name not in found and len(found) == most:
                return _page(found, after)
            after = key
            found[name] = f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" if more else objects[key]
        return _page(found, "")


def _objects(bucket: Path) -> dict[str, str]:
    """How a list shows each object of a bucket, in the order of their names; times are in whole seconds, as in S3."""
    found = {}
    for path in bucket.rglob("*"):
        if path.is_file():
            facts, key = path.stat(), str(path.relative_to(bucket))
            when = f"{datetime.fromtimestamp(facts.st_mtime, UTC):%Y-%m-%dT%H:%M:%S.000Z}"
            shown = f"<Key>{escape(key)}</Key><LastModified>{when}</LastModified><Size>{facts.st_size}</Size>"
            found[key] = f"<Contents>{shown}</Contents>"
    return dict(sorted(found.items()))


def _page(found: dict[str, str], after: str) -> str:
    more = f"<NextContinuationToken>{escape(after)}</NextContinuationToken>" if after else ""
    return (
        f"<ListBucketResult><KeyCount>{len(found)}</KeyCount><IsTruncated>{str(bool(after)).lower()}</IsTruncated>"
        f"{more}{''.join(found.values())}</ListBucketResult>"
    )


def _reply(status: int, body: bytes, more: str = "", length: int | None = None) -> bytes:
    head = (
        f"HTTP/1.1 {status} x\r\nContent-Length: {len(body) if length is None else length}\r\n"
        f'ETag: "0"\r\nLast-Modified: {formatdate(0, usegmt=True)}\r\n{more}\r\n'
    )
    return head.encode() + body


@contextmanager
def counting_s3(folder: Path, ms: float = 0) -> Iterator[CountingS3]:
    """Serve the folders in ``folder`` on a loopback port, from a thread."""
    server, started, ended = CountingS3(folder, ms), Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def listen() -> None:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=512)
        server.port = listener.sockets[0].getsockname()[1]
        loops.append(asyncio.get_running_loop())
        started.set()
        await ended.wait()
        listener.close()

    thread = Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()
