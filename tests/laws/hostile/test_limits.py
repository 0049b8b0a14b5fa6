"""What a checkpoint costs to inspect is bounded by what is there, whatever it claims; a large one is read in full."""

import os
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.formats.limits import LARGEST_RECORD
from tests.conftest import OUTPUTS, Ckpt, CopyOf
from tests.laws.hostile.measure import measured
from tests.support.places import some_quick
from tests.support.spark.live import EVERY_CASE

CPU_S, PEAK_MIB = 3.0, 300.0  # 1.9 s and 130 MiB on idle cores; beside other work CPU time grows by half


def stray_operator(checkpoint: Path) -> None:
    (checkpoint / "state/99999999").mkdir()


def many_partitions(checkpoint: Path) -> None:
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        text = file.read_text()
        file.write_text(text.replace('shuffle.partitions":"', 'shuffle.partitions":"9999999'))


def sparse(path: str) -> Callable[[Path], None]:
    def grow(checkpoint: Path) -> None:
        os.truncate(next(checkpoint.glob(path)), 512 << 20)

    return grow


def nested_lists(checkpoint: Path) -> None:
    """The JSON that takes most memory for its size, in every log file that is read."""
    for file in sorted((checkpoint / "offsets").glob("[0-9]*")):
        head = "\n".join(file.read_text().splitlines()[:2])
        body = "[" + "[]," * ((LARGEST_RECORD - len(head) - 10) // 3) + "[]]"
        file.write_text(f"{head}\n{body}")


def zip_bomb(checkpoint: Path) -> None:
    """Entries of zeros, and no central directory to see that from."""
    entry = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = b"".join(entry.compress(bytes(1 << 20)) for _ in range(200)) + entry.flush()
    local = struct.pack("<IHHHIIIIHH", 0x04034B50, 20, 0, 8, 0, 0, len(packed), 0, 7, 0) + b"OPTIONS"
    for file in checkpoint.glob("state/0/*/*.zip"):
        file.write_bytes(local + packed)


def metadata_bomb(checkpoint: Path) -> None:
    for file in checkpoint.glob("state/0/*/*.zip"):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("metadata", b'v1\n{"sstFiles":[' + b"[]," * 2_500_000 + b"[]]}")


def links(checkpoint: Path) -> None:
    """Ten folders, each with ten links to the next: ten thousand million ways."""
    (checkpoint / "state/deep").mkdir(parents=True)
    for depth in range(10):
        folder = checkpoint / f"state/deep/{depth}"
        folder.mkdir()
        for name in range(10):
            (folder / f"to{name}").symlink_to(f"../{depth + 1}")
    (checkpoint / "state/deep/10").mkdir()


def many_operators(checkpoint: Path) -> None:
    for operator in range(1, 3000):
        (checkpoint / f"state/{operator}").mkdir()


HOSTILE = {
    "a stray operator": ("aggregation-hdfs-4.2", stray_operator, "state/1"),
    "999999910 shuffle partitions": ("aggregation-hdfs-4.2", many_partitions, "state/0/"),
    "a sparse offsets file": ("stateless-3.5", sparse("offsets/5"), "offsets/5"),
    "a sparse predecessor": ("stateless-3.5", sparse("offsets/4"), "offsets/4"),
    "a sparse commit": ("stateless-3.5", sparse("commits/5"), "commits/5"),
    "sparse metadata": ("stateless-3.5", sparse("metadata"), "metadata"),
    "a sparse schema": ("aggregation-hdfs-4.2", sparse("state/0/0/_metadata/schema"), "schema"),
    "sparse operator metadata": ("aggregation-hdfs-4.2", sparse("state/0/_metadata/metadata"), "_metadata"),
    "JSON of lists": ("stateless-3.5", nested_lists, "offsets/5"),
    "a zip bomb": ("aggregation-rocksdb-4.2", zip_bomb, ".zip"),
    "a metadata bomb": ("aggregation-rocksdb-4.2", metadata_bomb, ".zip"),
    "links to links": ("aggregation-hdfs-4.2", links, None),
    "3,000 operators": ("aggregation-hdfs-4.2", many_operators, "state/1"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "output"),
    [
        (what, output)
        for number, what in enumerate(HOSTILE)
        for output in OUTPUTS
        if EVERY_CASE or output in ("json", OUTPUTS[number % len(OUTPUTS)])
    ],
)
def test_the_cost_is_bounded_and_a_finding_names_the_file(what: str, output: str, copy_of: CopyOf) -> None:
    sample, damage, named = HOSTILE[what]
    checkpoint = copy_of(sample)
    damage(checkpoint)

    run, cost = measured("inspect", checkpoint, "-o", output)

    assert run.exit_code in (0, 1)
    assert run.stderr == ""
    assert cost.cpu_s < CPU_S, cost
    assert cost.peak_mib < PEAK_MIB, cost
    if output == "json":
        findings = run.json()["findings"]
        assert named is None or any(named in found["path"] for found in findings)


def suspicious_state(checkpoint: Path) -> None:
    """Deltas that go on behind their end, which has to be looked for."""
    for file in checkpoint.glob("state/0/0/*.delta"):
        os.truncate(file, 120 << 20)


def many_partitions_of_many_operators(checkpoint: Path) -> None:
    """What is there may be a lot: 60,000 files."""
    for partition in range(len(list(checkpoint.glob("state/0/[0-9]*"))), 200):
        shutil.copytree(checkpoint / "state/0/1", checkpoint / f"state/0/{partition}", copy_function=os.link)
    for operator in range(1, 20):
        shutil.copytree(checkpoint / "state/0", checkpoint / f"state/{operator}", copy_function=os.link)


def large_operator_metadata(checkpoint: Path) -> None:
    """300 MB in a hundred files, each of a size that is read."""
    folder = checkpoint / "state/0/_metadata/v2"
    content = (folder / "0").read_bytes() + b" " * (3 << 20)
    for batch in range(100):
        (folder / str(batch)).unlink(missing_ok=True)
        (folder / str(batch)).write_bytes(content)


COSTLY = {
    "a suspicious state": ("inspect", "aggregation-hdfs-4.2", suspicious_state, None),
    "20 operators of 200 partitions": ("inspect", "aggregation-hdfs-4.3", many_partitions_of_many_operators, None),
    "300 MB of operator metadata": ("relocate", "tws-rocksdb-4.2", large_operator_metadata, "state/0/_metadata/v2/"),
    "sparse operator metadata": ("relocate", "tws-rocksdb-4.2", sparse("state/0/_metadata/v2/1"), "_metadata/v2/1"),
    "a sparse checksum": ("relocate", "tws-rocksdb-4.2", sparse("state/0/_metadata/v2/.1.crc"), None),
    "sparse metadata of a reading": ("export-state", "tws-rocksdb-4.2", sparse("state/0/_metadata/v2/1"), "v2/1"),
    "a source log of 300 MB": ("handoff", "file-source-3.5", sparse("sources/0/9.compact"), "sources/0/9.compact"),
}
OPTIONS = {"relocate": ["--to", "s3a://bucket/x"], "export-state": ["--plan", "--all-units", "--to", "x"]}


@pytest.mark.slow
@pytest.mark.parametrize("what", COSTLY)
def test_what_is_too_much_is_refused_in_a_line_that_names_the_file_or_left_unread(what: str, copy_of: CopyOf) -> None:
    command, sample, damage, named = COSTLY[what]
    checkpoint = copy_of(sample)
    damage(checkpoint)

    run, cost = measured(command, checkpoint, *OPTIONS.get(command, []))

    assert cost.cpu_s < CPU_S, cost
    assert cost.peak_mib < PEAK_MIB, cost
    assert run.exit_code in ((0, 1) if named is None else (3,))
    assert named is None or named in run.stderr + "".join(run.stdout.split("\n"))


READING = [
    ["inspect"],
    ["repair-async", "--strategy", "fill"],
    ["repair-async", "--strategy", "rewind"],
    ["relocate", "--to", "s3a://bucket/x"],
    ["handoff"],
    ["offsets", "show"],
    ["migrate", "changelog", "--to", "on", "--verify", "--files-only"],
    ["migrate", "provider", "--to", "hdfs"],
    ["migrate", "real-time"],
    ["migrate", "transform-with-state", "--plan", "--to", "x"],
    ["export-state", "--plan", "--to", "x"],
]


def far_commit(batch: int) -> Callable[[Path], None]:
    """A commit so far ahead that the batches up to it cannot be counted one by one."""

    def copy(checkpoint: Path) -> None:
        shutil.copy(checkpoint / "commits/5", checkpoint / f"commits/{batch}")

    return copy


def far_snapshot(checkpoint: Path) -> None:
    for batch in (99_999_997, 99_999_998):
        far_commit(batch)(checkpoint)
    for folder in checkpoint.glob("state/0/*"):
        for file in list(folder.glob("[0-9]*.zip"))[:1]:
            shutil.copy(file, folder / "99999999.zip")


def log_of_no_source(checkpoint: Path) -> None:
    shutil.copytree(checkpoint / "sources/0", checkpoint / "sources/7")


def deep_metadata(checkpoint: Path) -> None:
    file = checkpoint / "state/0/_metadata/v2/1"
    file.write_bytes(
        file.read_bytes().replace(b'"operatorName":', b'"deep":' + b"[" * 5_000 + b"]" * 5_000 + b',"operatorName":')
    )


CLAIMS = {
    "a far commit": ("stateless-3.5", far_commit(99_999_999)),
    "the last commit there can be": ("stateless-3.5", far_commit(2**63 - 1)),
    "a far commit of a stateful query": ("aggregation-hdfs-4.2", far_commit(99_999_999)),
    "a far snapshot": ("aggregation-changelog-4.2", far_snapshot),
    "the log of a source that is not there": ("file-source-3.5", log_of_no_source),
    "deep operator metadata": ("tws-format2-4.3", deep_metadata),
}


@pytest.mark.parametrize("what", CLAIMS)
def test_what_a_name_or_a_file_claims_costs_nothing(what: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    sample, damage = CLAIMS[what]
    checkpoint = copy_of(sample)
    damage(checkpoint)
    for command, *options in READING:
        at = 1 if options[:1] and not options[0].startswith("-") else 0
        run = ckpt(command, *options[:at], checkpoint, *options[at:])
        assert run.exit_code in (0, 1, 2, 3)
        assert run.stdout or run.refusal()


def test_no_file_is_copied_a_thousand_times(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    far_commit(99_999_999)(checkpoint)
    found = ckpt("repair", checkpoint, "-o", "json").json()
    (again,) = [way for way in found["ways"] if way["name"] == "read-again"]
    assert again["refused"]
    assert "commits/99999999" in {step["path"] for step in found["steps"] if step["action"] == "remove"}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["offsets/5", "commits/5", "metadata"])
def test_what_spark_does_with_a_file_that_is_too_large_is_unknown(where: str, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    os.truncate(checkpoint / where, LARGEST_RECORD + 1)
    document = measured("inspect", checkpoint, "-o", "json")[0].json()
    assert {one["outcome"] for one in document["restart"]} == {"unknown"}
    assert ("CKPT509", where) in {(found["code"], found["path"]) for found in document["findings"]}


@pytest.mark.parametrize("where", ["offsets/5", "commits/5", "metadata"])
def test_a_file_that_is_too_large_is_repaired(where: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, kept = copy_of("stateless-3.5"), tmp_path / "kept"
    query_id = ["--query-id", open_checkpoint(checkpoint).query_id] if where == "metadata" else []
    os.truncate(checkpoint / where, LARGEST_RECORD + 1)
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    assert "ckpt repair" in ckpt("inspect", checkpoint).stdout
    changed = ckpt("repair", checkpoint, *query_id, "--accept-replay", "--apply", "--grace", 0, "--backup", kept)
    assert changed.exit_code == 0, changed.stdout
    assert ckpt("inspect", checkpoint).exit_code == 0
    assert not ckpt("repair", checkpoint, "-o", "json").json()["steps"]
    assert ckpt("repair", checkpoint, "--undo", kept, "--grace", 0).exit_code == 0
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before


PARTS_LINKED = pytest.mark.parametrize(
    "part", ["state", "metadata", "offsets/5", "commits", "state/0/0/1.delta", ".metadata.crc"]
)


def _link_out(checkpoint: Path, part: str) -> Path:
    """Put a part of a checkpoint on another disk, and a link in its place."""
    disk = checkpoint.parent / "disk"
    shutil.move(checkpoint / part, disk)
    (checkpoint / part).symlink_to(disk)
    return checkpoint


@PARTS_LINKED
@pytest.mark.parametrize(
    "words",
    [["inspect"], ["inspect", "--deep"], ["inspect", "--batches", "0"], ["scan", "--depth", "1"], ["preflight"]],
)
def test_a_link_out_of_the_checkpoint_is_a_finding(words: list[str], part: str, copy_of: CopyOf, ckpt: Ckpt) -> None:
    checkpoint = _link_out(copy_of("aggregation-hdfs-4.2"), part)
    run = ckpt(*words, checkpoint, "-o", "json")
    assert run.exit_code == 1
    document = run.json()
    if words[0] == "scan":
        assert (document["checkpoints"][0]["codes"], document["checkpoints"][0]["outcome"]) == (["CKPT510"], "unknown")
        return
    findings = document["holds" if words == ["preflight"] else "findings"]
    troubles = [finding for finding in findings if finding["severity"] != "note"]
    assert [(finding["code"], finding["path"]) for finding in troubles] == [("CKPT510", part)]
    assert {forecast["outcome"] for forecast in document["restart"]} == {"unknown"}
    assert document["next"]
    assert ckpt("inspect", shutil.copytree(checkpoint, checkpoint.parent / "copy")).exit_code == 0


@PARTS_LINKED
@pytest.mark.parametrize(
    "words",
    [
        *(["repair"], ["repair", "--deep"], ["rewind", "--to-batch", "3"], ["prune"], ["state", "show"]),
        *(["state", "verify"], ["handoff"], ["copy", "{new}"], ["rewrite", "{new}", "--partitions", "2"]),
    ],
)
def test_other_commands_refuse_a_link_out_in_a_line(
    words: list[str], part: str, copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path
) -> None:
    checkpoint = _link_out(copy_of("aggregation-hdfs-4.2"), part)
    number = 2 if words[0] == "state" else 1
    options = [word.format(new=tmp_path / "new") for word in words[number:]]
    run = ckpt(*words[:number], checkpoint, *options)
    assert run.exit_code == 3
    assert f"{part} is a symbolic link that leads out of the checkpoint" in " ".join(run.refusal().split())
    assert not (tmp_path / "new").exists()


def test_who_looked_past_a_link_reads_no_state(copy_of: CopyOf) -> None:
    import ckpt

    looked = ckpt.inspect(_link_out(copy_of("aggregation-hdfs-4.2"), "state/0/0")).checkpoint
    for read in (ckpt.state_units, ckpt.read_state_arrow, ckpt.state_verify):
        with pytest.raises(ckpt.StorageError, match="leads out of the checkpoint"):
            read(looked)


def test_a_sparse_state_file_is_read_no_further_than_its_checksum_says(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-format2-4.2")
    (file, *_) = checkpoint.glob("state/0/1/1_*.changelog")
    os.truncate(file, 1 << 40)
    run, cost = measured("state", "verify", checkpoint, "--jobs", "1", "-o", "json")
    assert str(file.relative_to(checkpoint)) in {damage["path"] for damage in run.json()["damages"]}
    assert cost.cpu_s < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    some_quick(
        ["_ckpt_export.json", "operator-0/_ckpt_export.json", "part", "smaller part", "operator-0/_delta_log/0.json"], 3
    ),
)
def test_a_sparse_file_of_an_export_is_refused_in_a_line(path: str, tmp_path: Path) -> None:
    import ckpt

    old, export = "sample_checkpoints/aggregation-hdfs-4.2", tmp_path / "export"
    ckpt.export_state(old, to=str(export), all_units=True, engine="native")
    part = next(file for file in export.rglob("*.parquet") if file.name[0] not in "_.")
    file = (
        part if path.endswith("part") else export / part.parent.name / "_delta_log/0.json" if "_log" in path else None
    )
    file = file or (export / path if path.count("/") == 0 else part.parent / "_ckpt_export.json")
    file.parent.mkdir(exist_ok=True)
    file.touch()
    os.truncate(file, (2 << 30) if path == "smaller part" else 30 << 30)
    run, cost = measured("import-state", export, tmp_path / "new", "--like", old, "--jobs", "1")
    assert run.exit_code == 3, run
    assert re.search("it has 32,212,254,720 bytes|does not end with PAR1", run.refusal())
    assert cost.peak_mib < 300
    assert not (tmp_path / "new").exists()
