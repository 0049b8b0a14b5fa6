"""Log files full of garbage are findings: no traceback, no wait, and still one valid document."""

import random
import time
from pathlib import Path

import pytest

from tests.commands import contract
from tests.conftest import OUTPUTS, Ckpt, CopyOf, Run
from tests.support.places import some_quick
from tests.support.spark.live import EVERY_CASE

HEAD = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n'
MEGABYTE = 1_000_000

GARBAGE = {
    "random bytes": random.Random(1).randbytes(MEGABYTE),
    "zeros": bytes(MEGABYTE),
    "text": (b"All work and no play makes Jack a dull boy.\n" * 25_000)[:MEGABYTE],
    "open brackets": b"[" * MEGABYTE,
    "v1, open brackets": b"v1\n" + b"[" * MEGABYTE,
    "open braces": b"v1\n" + b'{"a":' * (MEGABYTE // 5),
    "quotes": b'v1\n"' + b'\\"' * (MEGABYTE // 2),
    "digits": b"v1\n" + b"9" * MEGABYTE,
    "version of digits": b"v" + b"9" * MEGABYTE,
    "one source, brackets": HEAD + b"[" * MEGABYTE,
    "one source, digits": HEAD + b"9" * 5_000,
    "one source, an exponent": HEAD + b"1e999999999",
    "one source, NaN": HEAD + b'{"offset":NaN,"timestamp":-Infinity}',
    "one source, half a surrogate": HEAD + b'{"offset":"\\ud800"}',
    "one source, deep": HEAD + b"[" * 900 + b"]" * 900,
    "one source, huge numbers": HEAD + b'{"offset":' + b"9" * 900 + b',"timestamp":' + b"9" * 900 + b"}",
    "Kafka, absurd": HEAD + b'{"t":{"0":99999999999999999999,"-1":-5,"x":1}}',
    "times no calendar has": HEAD.replace(b'Ms":1,', b'Ms":9223372036854775807,') + b"5",
    "times before time": HEAD.replace(b'Ms":1,', b'Ms":-9223372036854775808,') + b"5",
    "byte order mark": b"\xef\xbb\xbfv1\n{}\n5",
    "UTF-16": HEAD.decode().encode("utf-16"),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["offsets/5", "offsets/4", "offsets/0", "commits/5", "metadata"])
@pytest.mark.parametrize("what", GARBAGE)
def test_a_log_file_of_garbage(what: str, where: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    (checkpoint / where).write_bytes(GARBAGE[what])

    document = _inspected(checkpoint, ckpt).json()

    told = {entry["outcome"] for entry in document["restart"]}
    parses = what.startswith(("one source", "Kafka", "times")) or where == "offsets/0"
    if not parses and where.startswith("offsets"):
        assert told == {"fails-at-start"}
        batch = int(where.partition("/")[2])
        assert document["batches"]["offsets"]["unreadable"] == [batch]
    if where == "metadata":
        assert told == {"fails-at-start"}
        assert document["checkpoint"]["query_id"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "raw",
    [b"v1" + b"\n" * MEGABYTE, HEAD + b"-\n" * (MEGABYTE // 2), HEAD + b"5\n" * (MEGABYTE // 2)],
    ids=["newlines", "no offsets", "offsets"],
)
def test_as_many_sources_as_a_megabyte_has_lines(raw: bytes, ckpt_process: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    (checkpoint / "offsets" / "5").write_bytes(raw)
    for output in OUTPUTS if EVERY_CASE else OUTPUTS[:2]:
        result = ckpt_process("inspect", checkpoint, "-o", output, timeout=30)
        assert result.exit_code == 1
        assert len(result.stdout) < MEGABYTE


@pytest.mark.parametrize(
    "where",
    [
        "state/0/_metadata/metadata",
        "state/0/0/_metadata/schema",
        "state/0/0/6.changelog",
        "state/0/1/1.changelog",
        "state/0/1/3.zip",
        "state/0/1/3.snapshot",
        "sources/0/0",
        "offsets/.5.crc",
    ],
)
@pytest.mark.parametrize("what", some_quick(["random bytes", "zeros", "open brackets", "v1, open brackets"], 2))
def test_a_file_of_garbage_elsewhere(what: str, where: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-changelog-4.0")
    (checkpoint / where).parent.mkdir(parents=True, exist_ok=True)
    (checkpoint / where).write_bytes(GARBAGE[what])
    _inspected(checkpoint, ckpt)


@pytest.mark.parametrize(
    "name", ["9223372036854775807", "9223372036854775808", "-1", "+7", "007", "\u0667", "7.compact", " 8"]
)
@pytest.mark.parametrize("folder", ["offsets", "commits"])
def test_names_that_are_almost_batches(name: str, folder: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    (checkpoint / folder / name).write_bytes((checkpoint / folder / "5").read_bytes())
    _inspected(checkpoint, ckpt)


def test_folders_where_files_belong_and_files_where_folders_belong(ckpt: Ckpt, copy_of: CopyOf) -> None:
    for index, name in enumerate(["metadata", "offsets", "commits", "state", "sources"]):
        checkpoint = copy_of("aggregation-hdfs-3.5", to=f"file-{index}")
        path = checkpoint / name
        if path.is_dir():
            path.rename(checkpoint / f"old-{name}")
            path.write_text("a file")
        else:
            path.unlink(missing_ok=True)
            path.mkdir()
        _inspected(checkpoint, ckpt)


def _inspected(checkpoint: Path, ckpt: Ckpt) -> Run:
    """Both forms, in good time and as published; nothing on stderr, nothing that a terminal would obey."""
    before = time.process_time()
    table, document = ckpt("inspect", checkpoint), ckpt("inspect", checkpoint, "-o", "json")
    assert time.process_time() - before < 5
    assert table.exit_code == document.exit_code
    assert document.exit_code in (0, 1)
    assert contract.disagreements(document.json()) == []
    assert table.stderr == document.stderr == ""
    assert all(line.isprintable() for line in table.stdout.split("\n"))
    assert len(table.stdout) < 20_000, "a page, not the garbage"
    return document
