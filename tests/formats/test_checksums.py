"""The CRC-32 of pieces together is that of all their bytes."""

from array import array
from zlib import crc32

import pytest
from hypothesis import given, strategies as st

from ckpt.formats.checksums import fold_checksums


@given(st.binary(max_size=3000), st.sampled_from([1, 4, 16, 512]))
def test_pieces_have_the_checksum_of_the_whole(data: bytes, size: int) -> None:
    data = data[: len(data) // size * size]
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert fold_checksums(array("I", map(crc32, pieces)), size) == crc32(data)


@pytest.mark.parametrize("bad", [(0,), (2999,), (1000, 1001), range(3000)])
def test_another_checksum_is_noticed(bad: tuple[int, ...]) -> None:
    data = bytes(range(256)) * 2 * 3000
    values = array("I", (crc32(data[at : at + 512]) for at in range(0, len(data), 512)))
    for place in bad:
        values[place] ^= 1 << place % 32
    assert fold_checksums(values, 512) != crc32(data)
