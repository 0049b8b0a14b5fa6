"""What no sample has: other checksums in SST files, and records that lead nowhere though every block is whole."""

import struct
from pathlib import Path

import google_crc32c
import pytest
import xxhash

from ckpt.checkpoint.state.needed_files import NeededFile
from ckpt.checkpoint.state.one_file import check_file
from ckpt.formats import compression
from ckpt.formats.blockstream import Pieces
from ckpt.formats.changelog import leads_to_end
from ckpt.formats.compression import Corrupt
from ckpt.formats.sst import FOOTER, UnknownTable, check_sst
from ckpt.formats.statefiles import judge_stream
from ckpt.model import DamageKind, StateFileKind
from ckpt.storage import open_storage
from ckpt.storage.held import HeldFiles
from tests.state.verify.damage import state_files

_MASK = 0xFFFFFFFF


def _masked_crc32c(block: bytes) -> int:
    found = int(google_crc32c.value(block))
    return (found >> 15 | found << 17) + 0xA282EAD8 & _MASK


def _check(data: bytes) -> None:
    check_sst(lambda offset, length: data[offset : offset + length], len(data), Pieces(iter([data[:9], data[9:]])))


KINDS = {
    0: lambda _: 0,
    1: _masked_crc32c,
    2: xxhash.xxh32_intdigest,
    3: lambda block: xxhash.xxh64_intdigest(block) & _MASK,
}


def _blocks(data: bytes) -> list[tuple[int, int]]:
    """Where blocks begin and end with their type byte, by trying every end with the checksum that samples have."""
    found, start = [], 0
    while start < len(data) - FOOTER:
        for end in range(start + 1, len(data) - FOOTER - 3):
            last = data[end - 1] * 0x6B9083D9 & _MASK
            if xxhash.xxh3_64_intdigest(data[start : end - 1]) & _MASK ^ last == struct.unpack_from("<I", data, end)[0]:
                found.append((start, end))
                start = end + 4
                break
        else:
            raise AssertionError("no block")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_checksum_of_rocksdb_is_known(kind: int) -> None:
    data = bytearray(min(state_files()["sst"], key=lambda path: path.stat().st_size).read_bytes())
    blocks = _blocks(bytes(data))
    assert len(blocks) > 3
    data[len(data) - FOOTER] = kind
    with pytest.raises(Corrupt):
        _check(bytes(data))
    for start, end in blocks:
        struct.pack_into("<I", data, end, KINDS[kind](bytes(data[start:end])))
    _check(bytes(data))
    for newer in (6, 7, 8):
        data[-12] = newer
        with pytest.raises(UnknownTable, match=f"its format version {newer} is unknown to ckpt"):
            _check(bytes(data))


RECORD = struct.pack(">i4si4s", 4, b"keys", 4, b"vals")
END = b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("data", "leads"),
    [
        (END, True),
        (RECORD + END, True),
        (RECORD + struct.pack(">i4si", 4, b"gone", -1) + END, True),
        (RECORD, False),
        (RECORD[:-1] + END, False),
        (struct.pack(">i4si", 4, b"keys", -2) + END, False),
        (b"\x00\x02v2" + b"\x01" + RECORD + b"\x00", True),
        (b"\x00\x02v2" + b"\x02" + RECORD + b"\x00", False),
        (b"\x00\x02v3" + b"\x00\x02[]" + RECORD + END, True),
        (b"\x00\x02v4" + b"\x00\x02[]" + b"\x11" + RECORD + b"\x00", True),
        (b"\x00\x02v4" + b"\xff\xff[]", False),
        (b"", False),
    ],
)
def test_records_lead_to_their_end(data: bytes, leads: bool) -> None:
    assert leads_to_end(data) is leads


@pytest.mark.parametrize("at", [*range(-21, -13), *range(-12, 0)])  # -13: the lower half of the token is of no account
@pytest.mark.parametrize(
    ("data", "kind", "endings"),
    [
        (RECORD + END, StateFileKind.DELTA, [DamageKind.ODD_END] * 2),
        (RECORD + END, StateFileKind.CHANGELOG, [DamageKind.ODD_END] * 2),
        (END, StateFileKind.DELTA, [DamageKind.ODD_END] * 2),
        (END, StateFileKind.CHANGELOG, [DamageKind.TRUNCATED, DamageKind.BAD_END]),
        (RECORD, StateFileKind.DELTA, [DamageKind.TRUNCATED, DamageKind.UNREADABLE]),
    ],
)
def test_a_damaged_end_mark_is_no_missing_data(
    data: bytes, kind: StateFileKind, endings: list[DamageKind], at: int
) -> None:
    """As Spark did (cases `flipped-end-of-` of the oracle), whether ends or every byte are read."""
    content = bytearray(compression.store_block(data))
    content[at] ^= 4
    name, stored = f"a/1.{kind}", bytes(content)
    damage = check_file(HeldFiles({name: stored}, local=True), NeededFile(name, kind, len(stored), "lz4", False, False))
    assert [judge_stream(stored, kind), getattr(damage, "kind", None)] == endings


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (compression.store_block(RECORD + END), None),
        (compression.store_block(RECORD), DamageKind.TRUNCATED),
        (compression.store_block(RECORD + END)[:-21], DamageKind.ODD_END),
        (compression.store_block(RECORD + END) + b"more", DamageKind.ODD_END),
        (compression.store_block(RECORD * 3000 + END)[:-60], DamageKind.TRUNCATED),
        (compression.store_block(b""), DamageKind.TRUNCATED),
        (b"garbage", DamageKind.TRUNCATED),
        (b"garbage" * 9, DamageKind.UNREADABLE),
        (b"", DamageKind.EMPTY),
    ],
)
def test_a_stream_is_judged_by_its_blocks_and_its_last_record(
    content: bytes, kind: DamageKind | None, tmp_path: Path
) -> None:
    (tmp_path / "1.delta").write_bytes(content)
    file = NeededFile("1.delta", StateFileKind.DELTA, len(content), "lz4", checksum=False, hidden_checksum=False)
    verdict = check_file(open_storage(str(tmp_path)), file)
    assert getattr(verdict, "kind", verdict) == kind
