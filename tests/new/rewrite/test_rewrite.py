"""``ckpt rewrite`` without Spark: the same rows, each in the partition where Spark looks for it, or a refusal."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import ckpt
from ckpt.errors import CkptError, StorageError, Undecodable, UsageError
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.rewrite.continuing import state
from tests.restart.oracle.cases.model import write
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark.live import EVERY_CASE

FORMS: list[dict[str, Any]] = [
    {},
    {"partitions": 1},
    {"partitions": 5},
    {"provider": "hdfs"},
    {"provider": "rocksdb", "partitions": 3},
    {"provider": "rocksdb", "format_version": 2},
]
STATEFUL = [name for name in SAMPLE_NAMES if not name.startswith("damaged") and (SAMPLES / name / "state").is_dir()]
QUICK = ("limit-hdfs-4.2", "session-window-changelog-4.2")


@cache
def state_of(sample: str) -> dict[str, list[str]]:
    return state(SAMPLES / sample)


@pytest.mark.parametrize(
    ("sample", "form"),
    [
        pytest.param(name, form, marks=() if name in QUICK else pytest.mark.slow, id=f"{name}-{form}")
        for row, name in enumerate(STATEFUL)
        for column, form in enumerate(FORMS)
        if EVERY_CASE or name in QUICK or (row + column) % 2 == 0
    ],
)
def test_every_row_is_there_and_where_spark_looks_for_it(sample: str, form: dict[str, Any], tmp_path: Path) -> None:
    made = ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "new"), accept_fewer_versions=True, **form)
    if made.refused:
        assert not (tmp_path / "new").exists()
        assert refusable(sample, form), made.refused
        return
    there = state_of(sample)
    assert state(tmp_path / "new") == there
    assert {unit.unit.label: unit.rows for unit in made.units} == {label: len(rows) for label, rows in there.items()}
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()
    folders = {int(folder.name) for folder in (tmp_path / "new/state/0").glob("[0-9]*")}
    assert folders == set(range(1 if sample.startswith("limit") else made.new.partitions))


def refusable(sample: str, form: dict[str, Any]) -> bool:
    """State that cannot be written: families, and the other format, without RocksDB."""
    families = sample.startswith(("tws", "join-v3", "join-v4"))
    rocksdb = "hdfs" not in sample or form.get("provider") == "rocksdb"
    return (families and form.get("provider") == "hdfs") or ("format_version" in form and not rocksdb)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "session-window-changelog-4.2", "join-changelog-4.2"])
def test_there_and_back_again(sample: str, tmp_path: Path) -> None:
    """Other providers and numbers of partitions, one after the other, and then as at first."""
    at, before = SAMPLES / sample, state(SAMPLES / sample)
    forms: list[dict[str, Any]] = [{"provider": "rocksdb"}, {"provider": "hdfs"}]
    for number, form in enumerate([*forms, *({"partitions": count} for count in (5, 1, 200, 2))]):
        into = tmp_path / str(number)
        assert ckpt.rewrite(str(at), str(into), **form).written
        assert state(into) == before
        at = into


KILLED = "aggregation-killed-hdfs-4.0"


@pytest.mark.parametrize("form", [*FORMS[:5], {"drop_keys": [{"key": "3"}]}], ids=str)
@pytest.mark.parametrize("sample", [KILLED, "aggregation-killed-changelog-4.3"])
def test_the_state_of_a_planned_batch_is_written_too(
    sample: str, form: dict[str, Any], copy_of: CopyOf, tmp_path: Path
) -> None:
    """Both versions of the state are equal to those of the old checkpoint; a commit makes the second one readable."""
    old, new = copy_of(sample), tmp_path / "new"
    made = ckpt.rewrite(str(old), str(new), **form)
    assert (made.batch, made.planned, made.planned_state) == (3, 4, "written")
    starts = [ckpt.inspect(ckpt.open_checkpoint(str(path))).forecasts for path in (old, new)]
    assert starts[0] == starts[1]

    def kept() -> list[list[str]]:
        states = [state(path)["operator 0"] for path in (old, new)]
        dropped = "'key_key': 3," if "drop_keys" in form else "nothing"
        return [[row for row in rows if dropped not in row] for rows in states]

    before = kept()
    for path in (old, new):
        shutil.copy(path / "commits/3", path / "commits/4")
    after = kept()
    assert before[0] == before[1] != after[0] == after[1]


def test_a_key_that_a_planned_batch_removed_is_removed(copy_of: CopyOf, tmp_path: Path) -> None:
    """Windows and sessions leave state; here a key that the version before has is made one of them."""
    old, new = copy_of(KILLED), tmp_path / "new"
    shutil.copy(old / "commits/3", old / "commits/4")
    kept = ckpt.read_state_arrow(str(old)).filter(pc.field("key_key") != 3)
    ckpt.write_state({"operator 0": kept}, str(tmp_path / "edited"), like=str(old))
    (old / "commits/4").unlink()
    for partition in ("0", "1"):
        for name in ("5.delta", ".5.delta.crc"):
            (old / f"state/0/{partition}/{name}").unlink(missing_ok=True)
        shutil.copy(tmp_path / f"edited/state/0/{partition}/5.snapshot", old / f"state/0/{partition}")
    new.mkdir()
    for provider in ("hdfs", "rocksdb"):
        made = ckpt.rewrite(str(old), str(new / provider), provider=provider, partitions=3)
        assert made.planned_state == "written"
        shutil.copy(old / "commits/3", new / provider / "commits/4")
        assert state(new / provider)["operator 0"] == sorted(map(str, kept.to_pylist()))


@pytest.mark.parametrize("damage", ["cut", "empty", "missing"])
def test_state_of_a_planned_batch_that_is_damaged_is_left_where_it_is(
    damage: str, copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path
) -> None:
    """A start runs the batch again, and writes it."""
    old = copy_of(KILLED)
    file = old / "state/0/1/5.delta"
    file.write_bytes(file.read_bytes()[:-40] if damage == "cut" else b"")
    if damage == "missing":
        file.unlink()
    made = ckpt("rewrite", old, tmp_path / "new", "--partitions", 3, "-o", "json").json()
    assert (made["written"], made["planned_batch"], made["planned_state"]) == (True, 4, "none")
    assert contract.disagreements(made, "rewrite") == []
    assert not [*(tmp_path / "new/state").rglob("5.*")]
    assert (tmp_path / "new/offsets/4").is_file()


def test_format_2_has_no_state_of_a_planned_batch(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    """Where a sink has the batch, the page says what to do: inspect sees that one start into noop comes first."""
    old, new = copy_of(KILLED), tmp_path / "new"
    run = ckpt("rewrite", old, new, "--provider", "rocksdb", "--format-version", 2, "--accept-fewer-versions")
    assert "in checkpoint format 2 a start finds only state of committed batches" in " ".join(run.stdout.split())
    (tmp_path / "out/_spark_metadata").mkdir(parents=True)
    for batch in range(5):
        (tmp_path / f"out/_spark_metadata/{batch}").write_text("v1")
    asked = ckpt("inspect", new, "--spark", "4.2", "--sink", tmp_path / "out", "-o", "json").json()
    assert "CKPT417" in {finding["code"] for finding in asked["findings"]}


def test_the_mark_that_sinks_have_the_planned_batch_comes_along(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    old = copy_of(KILLED)
    planned = json.loads((old / "offsets/4").read_text().splitlines()[1])["batchTimestampMs"]
    (old / "ckpt-first-start.json").write_text(json.dumps({"batch": 4, "planned_ms": planned}))
    codes = []
    assert ckpt("rewrite", old, tmp_path / "new").exit_code == 0
    for path in (old, tmp_path / "new"):
        codes.append({finding["code"] for finding in ckpt("inspect", path, "-o", "json").json()["findings"]})
    assert "CKPT419" in codes[0] & codes[1]


@pytest.mark.parametrize("damage", ["offsets/4", "offsets/6"])
def test_what_no_start_runs_is_refused_with_the_command_that_repairs_it(
    damage: str, copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path
) -> None:
    old = copy_of(KILLED)
    (old / damage).write_bytes(b"" if damage == "offsets/4" else (old / "offsets/4").read_bytes())
    if damage == "offsets/6":
        (old / "offsets/5").write_bytes((old / "offsets/4").read_bytes())
    refused = ckpt("rewrite", old, tmp_path / "new", "-o", "json")
    assert (refused.exit_code, refused.json()["written"]) == (3, False)
    assert f"ckpt repair {old}" in refused.json()["refused"]
    assert not (tmp_path / "new").exists()


def test_a_query_that_runs_meanwhile_is_noticed(copy_of: CopyOf, tmp_path: Path) -> None:
    """Sinks have that batch then, and the new checkpoint would run it over another range."""
    checkpoint = copy_of("limit-hdfs-4.2")
    latest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))

    def watcher(done: int, total: int) -> None:
        shutil.copy(checkpoint / f"offsets/{latest}", checkpoint / f"offsets/{latest + 1}")

    with pytest.raises(StorageError, match="the query is running"):
        ckpt.rewrite(str(checkpoint), str(tmp_path / "new"), watcher=watcher)
    assert not any(path.is_file() for path in (tmp_path / "new").rglob("*"))


def test_an_id_of_its_own(tmp_path: Path) -> None:
    made = ckpt.rewrite(str(SAMPLES / "limit-hdfs-4.2"), str(tmp_path / "new"), new_id=True)
    written = json.loads((tmp_path / "new/metadata").read_text())["id"]
    assert made.query_id == written != ckpt.open_checkpoint(str(SAMPLES / "limit-hdfs-4.2")).query_id


def test_a_stray_name_among_operator_metadata_is_left_behind(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    folder = "state/0/_metadata/v2"
    checkpoint = copy_of("join-v3-changelog-4.2", write(f"{folder}/1.delta", "v2"))
    assert ckpt("rewrite", checkpoint, tmp_path / "new", "--partitions", "2").exit_code == 0
    assert [path.name for path in (tmp_path / "new" / folder).iterdir() if path.name[0] != "."] == ["4"]


def test_a_plan_writes_nothing_and_a_full_folder_is_refused(ckpt: Ckpt, tmp_path: Path) -> None:
    words = ("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", "--partitions", 3)
    planned = ckpt(*words, "--plan", "-o", "json")
    assert (planned.exit_code, planned.json()["written"], (tmp_path / "new").exists()) == (0, False, False)
    assert contract.disagreements(planned.json(), "rewrite") == []
    assert ckpt(*words).exit_code == 0
    for again in (ckpt(*words), ckpt(*words, "--plan")):
        assert again.exit_code == 3
        assert again.stderr.count("\n") == 1
    nowhere = ("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "no" / "such")
    assert "cannot be written: create" in ckpt(*nowhere, "--plan").stderr
    assert ckpt("inspect", tmp_path / "new").exit_code == 0


@pytest.mark.parametrize("step", ["plan", "rewrite"])
def test_rows_of_which_no_layout_is_known_leave_nothing(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked for before anything is written; if they show up afterwards, the new checkpoint is removed."""

    def layout_of(*_: object) -> None:
        raise Undecodable("no state schema describes the rows")

    monkeypatch.setattr(f"ckpt.new.rewrite.{step}.layout_of", layout_of)
    for plan in (True, False) if step == "plan" else (False,):
        with pytest.raises(Undecodable):
            ckpt.rewrite(str(SAMPLES / "aggregation-hdfs-4.2"), str(tmp_path / "new"), plan=plan)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("sample", "stopped", "starts_with"),
    [
        ("aggregation-changelog-4.0", ["4.0"], ["4.1", "4.2", "4.3"]),
        ("aggregation-rocksdb-4.2", [], ["4.2", "4.3"]),
    ],
)
def test_versions_that_cannot_start_the_new_checkpoint_are_named_and_asked_about(
    sample: str, stopped: list[str], starts_with: list[str], ckpt: Ckpt, tmp_path: Path
) -> None:
    words = ("rewrite", SAMPLES / sample, tmp_path / "new", "--format-version", "2")
    for run in (ckpt(*words, "--plan"), ckpt(*words)) if stopped else ():
        said = "Spark 4.0 can start the old checkpoint, but not the new one: --accept-fewer-versions accepts that"
        assert (run.exit_code, said in " ".join(run.stdout.split())) == (3, True)
        assert not (tmp_path / "new").exists()
    accept = ("--accept-fewer-versions",) if stopped else ()
    planned = ckpt(*words, *accept, "--plan", "-o", "json").json()
    written = ckpt(*words, *accept, "-o", "json").json()
    for document in (planned, written):
        assert document["stopped"] == stopped
        assert set(starts_with) == set(document["starts_with"])
    forecasts = ckpt("inspect", tmp_path / "new", "-o", "json").json()["restart"]
    runs = {forecast["spark"] for forecast in forecasts if forecast["outcome"] == "resumes"}
    assert runs >= set(starts_with)
    assert not runs & set(stopped)


@pytest.mark.parametrize(
    ("sample", "words", "told"),
    [
        ("tws-rocksdb-4.2", ("--provider", "hdfs"), "column families"),
        ("aggregation-hdfs-4.2", ("--format-version", "2"), "only RocksDB supports"),
        ("aggregation-hdfs-4.2", ("--partitions", "2147483647"), "2,147,483,647 partitions"),
    ],
)
def test_what_is_not_written_is_refused_by_name(
    sample: str, words: tuple[str, ...], told: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    run = ckpt("rewrite", SAMPLES / sample, tmp_path / "new", *words)
    assert (run.exit_code, told in " ".join(run.stdout.split())) == (3, True)
    assert not (tmp_path / "new").exists()


def test_a_place_may_be_a_path(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, parts = copy_of("aggregation-hdfs-4.2"), ("key_key < 3", "key_key >= 3")
    rows = {"operator 0": ckpt.read_state_arrow(checkpoint)}
    made: tuple[Any, ...] = (
        ckpt.copy(checkpoint, tmp_path / "copied"),
        ckpt.copy(checkpoint, tmp_path / "again", since=tmp_path / "copied"),
        ckpt.rewrite(checkpoint, tmp_path / "rewritten", partitions=3),
        *ckpt.split(checkpoint, [tmp_path / "low", tmp_path / "high"], where=parts).parts,
        ckpt.write_state(rows, tmp_path / "written", like=checkpoint),
    )
    assert all(new.inspection.sound for new in made)
    with pytest.raises(UsageError, match="name two or more"):
        ckpt.merge(tmp_path / "low", tmp_path / "merged")  # type: ignore[arg-type]
    assert ckpt.relocate(checkpoint, to=tmp_path / "moved").plan.to == f"file:{tmp_path}/moved"
    accepted: dict[str, Any] = {"apply": True, "grace": 0, "accept_replay": True, "accept_skip": True}
    assert ckpt.rewind(checkpoint, to_batch=8, backup=tmp_path / "backup", **accepted).receipt.applied
    assert ckpt.rewind(checkpoint, undo=tmp_path / "backup", grace=0).receipt.undone


def test_offsets_without_settings_are_refused(copy_of: CopyOf, tmp_path: Path) -> None:
    """Those of the newest batch decide a start; those of the batch before are written as well."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    head, metadata, *sources = (checkpoint / "offsets/8").read_text().split("\n")
    metadata = json.dumps({**json.loads(metadata), "conf": None})
    (checkpoint / "offsets/8").write_text("\n".join([head, metadata, *sources]))
    with pytest.raises(CkptError, match="offsets/8 records no settings"):
        ckpt.rewrite(checkpoint, tmp_path / "new", partitions=3)


@pytest.mark.parametrize("place", [".", "inside"])
def test_it_is_not_written_into_itself(place: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("limit-hdfs-4.2")
    run = ckpt("rewrite", checkpoint, checkpoint / place)
    assert run.exit_code == 2


def test_it_is_not_written_where_it_is_gone_at_once(ckpt: Ckpt) -> None:
    run = ckpt("rewrite", SAMPLES / "limit-hdfs-4.2", "memory://new")
    assert (run.exit_code, run.refusal()) == (
        2,
        "ckpt: memory://new disappears when ckpt ends: name a permanent folder",
    )


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "limit-hdfs-4.2"])
def test_a_key_in_a_partition_that_is_not_its_own_is_not_taken_along(
    sample: str, copy_of: CopyOf, tmp_path: Path
) -> None:
    """Spark does not find it there; elsewhere it would, or find two."""
    damaged = copy_of(sample)
    shutil.rmtree(damaged / "state/0/1", ignore_errors=True)
    shutil.copytree(damaged / "state/0/0", damaged / "state/0/1")
    with pytest.raises(ckpt.CkptError, match=r"state/0/1 .* keys are in partitions where Spark does not look for them"):
        ckpt.rewrite(str(damaged), str(tmp_path / "new"), partitions=3)
    assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]


def test_commits_keep_the_names_of_sinks(copy_of: CopyOf, tmp_path: Path) -> None:
    """Version 3 of the commit log has them, in both formats of state store checkpoints."""
    old, sinks = copy_of("aggregation-changelog-4.2"), {"ledger": {"sinkName": "ledger", "commitOffset": "-"}}
    sinks["ledger"] |= {"providerName": "noop", "apiVersion": "DSv2"}
    for file in (old / "commits").glob("[0-9]*"):
        file.write_text(f"v3\n{json.dumps({'nextBatchWatermarkMs': 0, 'sinkMetadataMap': sinks})}")
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    for version in (1, 2):
        made = ckpt.rewrite(str(old), str(tmp_path / f"{version}"), format_version=version, accept_fewer_versions=True)
        commit = ckpt.open_checkpoint(str(tmp_path / f"{version}")).commits.readable(made.batch)
        assert commit is not None
        assert (commit.version, [sink.name for sink in commit.sinks]) == (3, ["ledger"])
        assert bool(commit.state_unique_ids) is (version == 2)
