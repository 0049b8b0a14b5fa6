"""An S3 server that counts: requests of each kind, each answered after some ms, as a store behind a network does.

It serves the folders in a folder as buckets, which may not change meanwhile, to whoever asks: it lists in pages of a
thousand names, and gives objects or ranges of them. A folder may be shown many times, under other prefixes of a bucket,
though it is on the disk once. With a folder for them, it takes objects too. Signatures are not looked at.
"""

import asyncio
import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import count
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

PAGE = 1000
NOTHING: Mapping[str, Path] = MappingProxyType({})


@dataclass
class CountingS3:
    folder: Path
    ms: float
    shown: Mapping[str, Path] = field(default_factory=dict)
    """Folders that are objects too, by ``bucket/prefix``."""
    port: int = 0
    denied: tuple[str, ...] = ()
    """Parts of keys, and of the prefixes of lists, that nobody may read."""
    requests: Counter[str] = field(default_factory=Counter)
    """By kind: ``LIST``, ``HEAD``, ``GET``, ``PUT``, ``COPY``, ``POST``, ``DELETE``."""
    sent: int = 0
    """Of the objects that it gave."""
    written: Path | None = None
    """Where it keeps the objects that it takes."""
    received: int = 0
    """Of these objects."""
    most_connections: int = 0
    """At a time, since it was started or this was set to 0."""
    _buckets: "dict[str, dict[str, _Object]]" = field(init=False)
    _keys: dict[str, list[str]] = field(init=False)  # in the order of a list
    _numbers: Iterator[int] = field(default_factory=count)  # of objects that it takes
    _parts: dict[str, dict[int, bytes]] = field(default_factory=dict)  # of those that come in several
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._buckets = {bucket.name: _objects(bucket) for bucket in self.folder.iterdir()}
        folders = {folder: _objects(folder) for folder in {*self.shown.values()}}
        for place, folder in self.shown.items():
            bucket, _, prefix = place.partition("/")
            objects = self._buckets.setdefault(bucket, {})
            objects.update((f"{prefix}/{path}", item) for path, item in folders[folder].items())
        self._keys = {bucket: sorted(objects) for bucket, objects in self._buckets.items()}

    @property
    def options(self) -> dict[str, str]:
        """The ``--storage-options`` values that reach it."""
        endpoint = f"http://127.0.0.1:{self.port}"
        return {"endpoint_override": endpoint, "access_key": "x", "secret_key": "x", "region": "us-east-1"}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        self._writers.add(writer)
        self.most_connections = max(self.most_connections, len(self._writers))
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                if "expect" in headers:
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await _body(reader, headers)
                await asyncio.sleep(self.ms / 1000)
                taken = self.written is not None and method in ("PUT", "POST", "DELETE")
                answer = self._change(method, target, headers, body) if taken else self._answer(method, target, headers)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._writers.discard(writer)

    async def hang_up(self) -> None:
        """Close all connections."""
        for writer in [*self._writers]:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, method: str, target: str, headers: dict[str, str]) -> bytes:
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if not key and method == "GET":
            self.requests["LIST"] += 1
            asked = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            if any(part in asked.get("prefix", "") for part in self.denied):
                return _DENIED
            return _reply(200, self._list(bucket, asked).encode())
        self.requests[method] += 1
        if any(part in key for part in self.denied):
            return _DENIED if method == "GET" else _reply(403, b"")
        item = self._buckets.get(bucket, {}).get(key)
        if item is None:
            return _reply(404, b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
        if method == "HEAD":
            return _reply(200, b"", length=item.size)
        wanted = headers.get("range")
        first, _, last = (wanted or "bytes=0-").removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or item.size), item.size - 1)
        with item.path.open("rb") as file:
            file.seek(begin)
            data = file.read(end - begin + 1)
        self.sent += len(data)
        if wanted is None:
            return _reply(200, data)
        return _reply(206, data, f"Content-Range: bytes {begin}-{end}/{item.size}\r\n")

    def _change(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        """Take an object, or a part of one; copy one that is there; remove one, or as many as are named."""
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        asked = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        source = headers.get("x-amz-copy-source")
        self.requests["COPY" if source else method] += 1
        self.received += len(body) * (method == "PUT")
        upload = asked.get("uploadId", "")
        if method == "DELETE":
            self._remove(bucket, key)
            return _reply(204, b"")
        if source:
            other, _, path = unquote(source).lstrip("/").partition("/")
            self._put(bucket, key, self._buckets[other][path].path.read_bytes())
            return _reply(200, b'<CopyObjectResult><ETag>"0"</ETag></CopyObjectResult>')
        if "delete" in asked:
            for name in re.findall("<Key>(.*?)</Key>", body.decode()):
                self._remove(bucket, unescape(name))
            return _reply(200, b"<DeleteResult></DeleteResult>")
        if "uploads" in asked:
            upload = str(next(self._numbers))
            self._parts[upload] = {}
            begun = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return _reply(200, begun.encode())
        if method == "POST":
            self._put(bucket, key, b"".join(part for _, part in sorted(self._parts.pop(upload).items())))
            return _reply(200, b'<CompleteMultipartUploadResult><ETag>"0"</ETag></CompleteMultipartUploadResult>')
        if upload:
            self._parts[upload][int(asked["partNumber"])] = body
        else:
            self._put(bucket, key, body)
        return _reply(200, b"")

    def _put(self, bucket: str, key: str, data: bytes) -> None:
        assert self.written is not None
        file = self.written / str(next(self._numbers))
        file.write_bytes(data)
        if key not in self._buckets.setdefault(bucket, {}):
            insort(self._keys.setdefault(bucket, []), key)
        self._buckets[bucket][key] = _shown(file)

    def _remove(self, bucket: str, key: str) -> None:
        if self._buckets[bucket].pop(key, None) is not None:
            self._keys[bucket].remove(key)

    def _list(self, bucket: str, asked: dict[str, str]) -> str:
        """A page of names: objects, and with a delimiter what they have in common up to it."""
        objects = self._buckets.get(bucket, {})
        keys = self._keys.get(bucket, [])
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        most = int(asked.get("max-keys", PAGE))
        found: dict[str, str] = {}
        at = max(bisect_right(keys, after), bisect_left(keys, prefix))
        while at < len(keys) and keys[at].startswith(prefix):
            key = keys[at]
            folder, more, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            name = prefix + folder + delimiter if more else key
            if len(found) == most:
                return _page(found, after)
            if more:
                found[name] = f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
                at = bisect_right(keys, name + "\U0010ffff", at)
                after = keys[at - 1]
            else:
                found[name] = f"<Contents><Key>{escape(key)}</Key>{objects[key].shown}</Contents>"
                at += 1
                after = key
        return _page(found, "")


class _Object(NamedTuple):
    """A file, and how a list shows it beside its name; times are in whole seconds, as in S3."""

    path: Path
    size: int
    shown: str


def _objects(folder: Path) -> dict[str, _Object]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(folder))] = _shown(path)
    return found


def _shown(path: Path) -> _Object:
    facts = path.stat()
    when = f"{datetime.fromtimestamp(facts.st_mtime, UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    return _Object(path, facts.st_size, f"<LastModified>{when}</LastModified><Size>{facts.st_size}</Size>")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """Read the body of a request; Amazon's chunks, which end in a checksum, are in those of HTTP."""
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = await _chunks(reader)
    await reader.readuntil(b"\r\n")
    if headers.get("content-encoding") == "aws-chunked":
        inner = asyncio.StreamReader()
        inner.feed_data(body)
        return await _chunks(inner)
    return body


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        found += (await reader.readexactly(size + 2))[:-2]
    return bytes(found)


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


_DENIED = _reply(403, b"<Error><Code>AccessDenied</Code></Error>")


@contextmanager
def counting_s3(
    folder: Path, ms: float = 0, shown: Mapping[str, Path] = NOTHING, written: Path | None = None
) -> Iterator[CountingS3]:
    """Serve the folders in ``folder`` on a loopback port, from a thread; ``shown`` are more, by ``bucket/prefix``."""
    server, started, ended = CountingS3(folder, ms, shown, written=written), Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def listen() -> None:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=512)
        server.port = listener.sockets[0].getsockname()[1]
        loops.append(asyncio.get_running_loop())
        started.set()
        await ended.wait()
        listener.close()
        await server.hang_up()

    thread = Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()
