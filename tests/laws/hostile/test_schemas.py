"""State schemas that nest deep, are wide, or hold numbers that no JSON document has."""

import struct
from pathlib import Path

import pytest

from tests.checkpoint.state.building import java_utf
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf

KEY = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def nested(depth: int) -> str:
    """A struct in a struct in a struct ..."""
    kind = '"long"'
    for _ in range(depth):
        kind = KEY.replace('"long"', kind)
    return kind


VALUES = {
    "depth 100": nested(100),
    "depth 200": nested(200),
    "depth 300": nested(300),
    "depth 5,000": nested(5_000),
    "NaN": KEY.replace("{}", '{"x":NaN}'),
    "infinity": KEY.replace("{}", '{"x":-1e999}'),
    "wide": KEY.replace('{"name":"a",', '{"name":"a","type":"long"},' * 5_000 + '{"name":"a",'),
}


def with_schema(checkpoint: Path, value: str) -> Path:
    """Write a state schema file of version 2, in chunks."""
    chunks = [[text[at : at + 60_000] for at in range(0, len(text), 60_000)] for text in (KEY, value)]
    parts = b"".join(struct.pack(">i", len(these)) + b"".join(map(java_utf, these)) for these in chunks)
    (checkpoint / "state/0/0/_metadata/schema").write_bytes(java_utf("v2") + parts)
    (checkpoint / "state/0/0/_metadata/.schema.crc").unlink(missing_ok=True)
    return checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("what", VALUES)
def test_a_schema_that_is_odd_breaks_no_report(what: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = with_schema(copy_of("aggregation-hdfs-4.2"), VALUES[what])
    table, document = ckpt("inspect", checkpoint), ckpt("inspect", checkpoint, "-o", "json")
    assert contract.disagreements(document.json()) == []
    assert table.exit_code == document.exit_code in (0, 1)
    assert len(table.stdout) < 20_000
    for words in (
        ["export-state", checkpoint, "--plan", "--to", tmp_path / "x"],
        ["migrate", "provider", checkpoint, "--to", "rocksdb"],
        ["migrate", "transform-with-state", checkpoint, "--plan", "--to", tmp_path / "x"],
    ):
        ckpt(*words)
        done = ckpt(*words, "-o", "json")
        assert done.exit_code in (1, 2, 3) or done.json()
