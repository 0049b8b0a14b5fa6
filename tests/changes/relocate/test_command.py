"""``ckpt relocate`` from the terminal: what it prints, exits with, and leaves behind, on real samples."""

import json
from pathlib import Path

import pytest

from ckpt.changes.relocate.plan import guess_spark_root
from ckpt.errors import UsageError
from ckpt.formats.sidecars import build_hadoop_sidecar
from tests.changes.applying import after_next, facts, look_at, obey, take_back
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES, some_quick
from tests.support.spark.samples import ORIGIN

TWS, JOIN = "tws-changelog-4.0", "join-v4-changelog-4.3"
MOVED = {name for name in SAMPLE_NAMES if name.startswith(("tws-", "join-v3", "join-v4", "damaged-tws"))}


def metadata_files(checkpoint: Path) -> list[Path]:
    return sorted(checkpoint.glob("state/*/_metadata/v2/[0-9]*"))


@pytest.mark.parametrize("sample", some_quick(SAMPLE_NAMES, 6))
def test_a_plan_changes_nothing_and_is_told_as_published(sample: str, ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "relocate")
    document = run.json()

    assert document["needed"] == (sample in MOVED)
    assert document["needed"] == bool(document["steps"] or document["refused"])
    expected = 3 if document["refused"] else 1 if document["steps"] else ckpt("inspect", SAMPLES / sample).exit_code
    assert run.exit_code == expected


@pytest.mark.parametrize("sample", [TWS, JOIN, "tws-avro-changelog-4.2", "tws-format2-4.3"])
def test_from_the_plan_to_the_end_and_back_by_the_commands_that_are_printed(
    sample: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(sample, to="100%20 sure")
    before = facts(checkpoint)

    done = obey(ckpt, checkpoint, "relocate", checkpoint)
    assert "RELOCATED" in done
    now = facts(checkpoint)
    changed = {path for path in now if now[path][-1] != before[path][-1]}
    files = {str(path.relative_to(checkpoint)) for path in metadata_files(checkpoint)}
    assert now.keys() == before.keys()
    assert changed == files | {f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}.crc" for path in files}
    for path in metadata_files(checkpoint):  # nothing but the root of the paths is another one
        there = before[str(path.relative_to(checkpoint))][-1]
        assert path.read_bytes() == there.replace(f"file:{ORIGIN}/{sample}/".encode(), f"file:{checkpoint}/".encode())
        assert path.with_name(f".{path.name}.crc").read_bytes() == build_hadoop_sidecar(path.read_bytes())

    inspected = ckpt("inspect", checkpoint, "-o", "json")
    assert {finding["code"] for finding in inspected.json()["findings"]}.isdisjoint({"CKPT305", "CKPT311"})
    assert inspected.exit_code == 0
    newer = checkpoint / "offsets" / "999"
    newer.write_text("a query went on")
    refused = ckpt(*after_next(done), "--grace", 0)
    assert refused.exit_code == 3
    assert "offsets/999" in refused.stdout
    assert after_next(refused.stdout) == ["inspect", str(checkpoint)], "what was refused is not advised again"
    newer.unlink()
    take_back(ckpt, checkpoint, done, before)


@pytest.mark.parametrize(
    ("to", "recorded"),
    [
        ("s3a://bucket/check points/100%25", "s3a://bucket/check points/100%25"),
        ("s3a://bucket/", "s3a://bucket"),
        ("hdfs://host:8020//data/./ck/", "hdfs://host:8020/data/ck"),
        ("abfss://container@account.dfs.core.windows.net/ck", "abfss://container@account.dfs.core.windows.net/ck"),
        ("dbfs:/mnt/ck", "dbfs:/mnt/ck"),
        ("file:///data/a%20b", "file:/data/a%20b"),
        ("file:/data/ck", "file:/data/ck"),
        ("/data/my checkpoint/", "file:/data/my checkpoint"),
        ('/data/"quoted\\', 'file:/data/"quoted\\'),
        ("/data/ünï", "file:/data/ünï"),
    ],
)
def test_paths_are_written_as_spark_records_them(to: str, recorded: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(TWS)
    run = ckpt("relocate", checkpoint, "--to", to, "--apply", "--grace", 0, "-o", "json")

    assert run.exit_code == 0
    assert run.json()["to"] == recorded
    for path in metadata_files(checkpoint):
        (store,) = json.loads(path.read_bytes().partition(b"\n")[2])["stateStoreInfo"]
        (schema,) = store["stateSchemaFilePaths"]
        root, below = schema[: len(recorded)], schema[len(recorded) + 1 :]
        assert root == recorded
        assert (checkpoint / below).is_file()
    assert ckpt("inspect", checkpoint).exit_code == 1


@pytest.mark.parametrize("linked", ["state", "state/0/_metadata", "state/0/_metadata/v2/0"])
@pytest.mark.parametrize("words", [[], ["--apply", "--grace", "0"]], ids=["plan", "apply"])
def test_state_behind_a_symbolic_link_is_refused_in_the_plan(
    words: list[str], linked: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(TWS)
    (checkpoint / linked).rename(checkpoint / "elsewhere")
    (checkpoint / linked).symlink_to(checkpoint / "elsewhere")
    before = facts(tmp_path)
    run = ckpt("relocate", checkpoint, "--to", "s3a://bucket/ck", *words, "-o", "json")
    assert run.exit_code == 3
    assert run.json()["refused"].startswith(f"{linked} is a symbolic link, and ckpt writes only to")
    assert (run.json()["steps"], run.json()["to"]) == ([], "s3a://bucket/ck")
    assert facts(tmp_path) == before


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "stateless-3.5", "damaged-empty-predecessor"])
def test_a_target_for_a_checkpoint_that_records_no_path(sample: str, ckpt: Ckpt) -> None:
    path = f"sample_checkpoints/{sample}"
    run = ckpt("relocate", path, "--to", "s3a://bucket/ck")
    assert run.exit_code == ckpt("inspect", path).exit_code
    assert "NOTHING TO RELOCATE" in run.stdout
    assert (
        contract.disagreements(ckpt("relocate", path, "--to", "s3a://bucket/ck", "-o", "json").json(), "relocate") == []
    )


def test_a_target_is_meant_to_the_letter(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """From s3a to s3, say, though both are one place."""
    checkpoint = copy_of(TWS)
    apply = ("--apply", "--grace", 0, "-o", "json")
    assert ckpt("relocate", checkpoint, "--to", "s3a://bucket/ck", *apply).json()["applied"] is True
    assert ckpt("relocate", checkpoint, "--to", "s3a://bucket/ck", *apply).json()["needed"] is False
    backup = checkpoint.with_name("second")  # two within a second would have the same one
    second = ckpt("relocate", checkpoint, "--to", "s3://bucket/ck", *apply, "--backup", backup).json()
    assert second["applied"] is True
    assert second["recorded"] == ["s3a://bucket/ck"]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"op": "delete", "path": "state/0/_stateSchema/default/0_*"}, "is not in this checkpoint: restore it"),
        ({"op": "truncate", "path": "state/0/_metadata/v2/1", "bytes": 300}, "v2/1 cannot be read"),
        (
            {
                "op": "replace_text",
                "path": "state/0/_metadata/v2/0",
                "old": "/_stateSchema/default/",
                "new": "/etc/x/y/",
            },
            "in a form that Spark does not write",
        ),
        (
            {
                "op": "replace_text",
                "path": "state/0/_metadata/v2/0",
                "old": "/state/0/_state",
                "new": "/state/1/_state",
            },
            "in a form that Spark does not write",
        ),
        (
            {"op": "replace_text", "path": "state/0/_metadata/v2/0", "old": "/default/0_", "new": "/../0_"},
            "in a form that Spark does not write",
        ),
    ],
)
def test_what_cannot_be_relocated_is_refused(damage: dict[str, object], told: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(TWS, damage)
    before = facts(checkpoint)
    run = ckpt("relocate", checkpoint, "--apply", "--grace", 0, "-o", "json")

    assert run.exit_code == 3
    assert told in run.json()["refused"]
    assert facts(checkpoint) == before
    assert "NO PLAN" in ckpt("relocate", checkpoint).stdout


def test_other_absolute_paths_are_told_and_stay(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-4.2")
    log = checkpoint / "out" / "_spark_metadata" / "0"
    log.parent.mkdir(parents=True)
    log.write_text(
        'v1\n{"path":"file:///data/out/part-0.parquet","size":1,"isDir":false,"modificationTime":1,'
        '"blockReplication":1,"blockSize":1,"action":"add"}'
    )
    run = ckpt("relocate", checkpoint, "-o", "json")

    assert run.exit_code == 0
    assert [(one["holder"], one["folder"], one["example"].rpartition("/")[0]) for one in run.json()["held"]] == [
        ("file-source", "sources/0", f"file://{ORIGIN}/inputs/file-source"),
        ("file-sink", "out/_spark_metadata", "file:///data/out"),
    ]
    page = ckpt("relocate", checkpoint).stdout
    assert "NOTHING TO RELOCATE" in page
    assert "fileNameOnly" in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--undo", "b", "--to", "/x"), "--undo restores everything"),
        (("--to", "data/ck"), "not an absolute path"),
        (("--to", "s3a:bucket/ck"), "not an absolute path"),
        (("--to", "s3a:/bucket/ck"), "names no bucket or host"),
        (("--to", "hdfs:///data/ck"), "names no bucket or host"),
        (("--to", "file://host/ck"), "not an absolute path"),
        (("--to", ""), "not an absolute path"),
        (("--apply", "--backup", "{checkpoint}/state/b"), "is inside the checkpoint"),
    ],
)
def test_bad_usage_is_one_line(words: tuple[str, ...], told: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(TWS)
    run = ckpt("relocate", checkpoint, *(word.format(checkpoint=checkpoint) for word in words), "--quiet")

    assert run.exit_code == 2
    assert told in run.refusal()


def test_every_published_key_is_used(ckpt: Ckpt, copy_of: CopyOf) -> None:
    seen: set[str] = set()
    for sample in (TWS, "file-source-4.2"):
        seen |= contract.keys_in(ckpt("relocate", copy_of(sample, to=sample), "-o", "json").json())
    sources = {"sources[]", "index", "from", "to"}
    unseen = {key.rpartition(".")[2] for key in contract.shapes("relocate").keys() - seen}
    assert unseen - contract.FORECAST_LISTS - sources == {"newer[]"}, "of a checkpoint that a newer Spark wrote"


@pytest.mark.parametrize(
    ("uri", "recorded", "root"),
    [
        ("/data/a%20b", "file:/old", "file:/data/a%20b"),
        ("file:///data/a%20b/", "file:/old", "file:/data/a b"),
        ("/dbfs/mnt/ck", "dbfs:/old", "dbfs:/mnt/ck"),
        ("s3://new/ck?region=x", "s3a://old/ck", "s3a://new/ck"),
        ("s3a://key:secret@new/ck", "file:/old", "s3a://new/ck"),
        ("hdfs://nn:8020/ck", "file:/old", "hdfs://nn:8020/ck"),
        ("abfs://box@account.dfs.core.windows.net/ck", "file:/o", "abfs://box@account.dfs.core.windows.net/ck"),
    ],
)
def test_by_default_it_is_opened_where_it_lies(uri: str, recorded: str, root: str) -> None:
    assert guess_spark_root(uri, [recorded]) == root


@pytest.mark.parametrize("uri", ["s3://bucket/ck", "memory://ck", "abfs://box/ck", "az://box/ck"])
def test_where_spark_would_spell_it_otherwise_it_has_to_be_named(uri: str) -> None:
    with pytest.raises(UsageError, match="`to`"):
        guess_spark_root(uri, ["file:/old"])
