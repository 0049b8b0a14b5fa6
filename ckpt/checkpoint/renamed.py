"""Files of the logs that are there under another name: ``offsets/5.bak``, while ``offsets/.5.crc`` stayed.

Hadoop keeps the checksums of ``N`` in ``.N.crc``. Whoever renames ``N`` with another tool leaves them, and they prove
which file beside them has its bytes, to the last one.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.formats.limits import LARGEST_RECORD
from ckpt.formats.names import sort_batch_names
from ckpt.formats.sidecars import hadoop_sidecar_name, parse_hadoop_sidecar, shown_name
from ckpt.model import Unreadable
from ckpt.storage import Listing

GZIPPED = ".gz"
_MOST = 50  # files that are compared
Reader = Callable[[Sequence[str]], Mapping[str, bytes | None]]


def find_renamed(listing: Listing, read: Reader) -> dict[str, str]:
    """Find missing files, by path, and those that have their bytes; ``read`` is called if there may be any."""
    lost = [*_find_lost(listing)]
    candidates = [*_list_candidates(listing, {path.rpartition("/")[0] for path, _ in lost})][:_MOST] if lost else []
    if not candidates:
        return {}
    checksums = read([crc for _, crc in lost])
    contents = {path: unpack(path, data) for path, data in read(candidates).items() if data}
    renamed: dict[str, str] = {}
    for path, crc in lost:
        known = parse_hadoop_sidecar(crc, checksums[crc] or b"")
        if isinstance(known, Unreadable) or not known.values:
            continue
        beside = (name for name in contents if name.rpartition("/")[0] == path.rpartition("/")[0])
        same = next((name for name in beside if contents[name] and known.match(contents[name])), None)
        if same is not None:
            renamed[path] = same
    return renamed


def unpack(path: str, data: bytes) -> bytes:
    """The bytes that a file stands for, nothing where they cannot be had."""
    if not path.endswith(GZIPPED):
        return data
    try:
        return zlib.decompressobj(31).decompress(data, LARGEST_RECORD)
    except zlib.error:
        return b""


def _find_lost(listing: Listing) -> Iterator[tuple[str, str]]:
    """Find log files and ``metadata`` that are missing while their checksum file is there, with its path."""
    for folder in (OFFSETS, COMMITS):
        names = listing.in_folder(folder)
        for crc in names:
            name = shown_name(crc)
            if name != crc and name not in names and sort_batch_names([name]).ids:
                yield f"{folder}/{name}", f"{folder}/{crc}"
    crc = hadoop_sidecar_name(METADATA)
    if listing.info(crc) is not None and listing.info(METADATA) is None:
        yield METADATA, crc


def _list_candidates(listing: Listing, folders: set[str]) -> Iterator[str]:
    """List files that are neither batches nor checksums; at the root, those that are named after ``metadata``."""
    for folder in sorted(folders):
        names = listing.in_folder(folder)
        batches = {str(batch) for batch in sort_batch_names(names).ids}
        for name in sorted(names):
            if not name.endswith(".crc") and name not in batches and (folder or METADATA in name):
                yield f"{folder}/{name}" if folder else name
