"""The records of one key in a changelog: those that reading all of them finds, in every sample and kind of record."""

from __future__ import annotations

import struct

import pytest

from ckpt.errors import Undecodable
from ckpt.formats.rows.changelog import changes_of, changes_of_key
from ckpt.formats.rows.codecs import decompress
from ckpt.formats.statefiles import RecordType
from tests.support.places import SAMPLES

CHANGELOGS = sorted(SAMPLES.glob("*/state/*/*/**/*.changelog"))


def test_those_of_every_key_in_every_sample() -> None:
    keys = 0
    for path in CHANGELOGS[::3]:
        try:
            data = decompress(iter([path.read_bytes()]), "lz4", 1 << 30)
            records = list(changes_of(data))
        except Undecodable:
            continue
        for key in {record.key for record in records}:
            ranges = RecordType.DELETE_RANGE
            assert changes_of_key(data, key) == [r for r in records if r.key == key or r.action is ranges]
            keys += 1
    assert keys > 100


def test_what_is_cut_is_refused() -> None:
    typed = b"\0\2v2" + b"\x01" + struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v"
    typed += b"\x20" + struct.pack(">i", 1) + b"a" + struct.pack(">i", 1) + b"z" + b"\x10"
    typed += struct.pack(">i", 1) + b"k" + struct.pack(">i", -1) + b"\0"
    assert [record.action for record in changes_of_key(typed, b"k")] == [1, 32, 16]
    assert [record.action for record in changes_of_key(typed, b"o")] == [32]
    plain = struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v" + struct.pack(">i", -1)
    assert changes_of_key(plain, b"k") == list(changes_of(plain))
    for data in (typed, plain):
        for end in range(5, len(data)):
            with pytest.raises(Undecodable):
                changes_of_key(data[:end], b"o")
