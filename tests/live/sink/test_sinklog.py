"""What ckpt reads of the log of a sink, without Spark: tables are written by delta-rs, which is also asked."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from ckpt import NotFound, StorageError, UsageError
from ckpt.formats.deltalog import choose_segment, parse_retention_ms
from ckpt.formats.text import Damaged
from ckpt.live.sink.reader import ask_sink, read_sink
from ckpt.live.sink.records import SinkKind
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.live.sink.test_plans import files, query_of
from tests.support.files import edit_metadata
from tests.support.remedies import remove
from tests.support.services.fixtures import USUAL, Upload

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")

QUERY = "70593f07-759f-415f-8591-109f754ff6b0"
OTHER = "11111111-2222-3333-4444-555555555555"
_ROWS = pa.table({"id": pa.array([1], pa.int64())})


def table_of(place: Path, *batches: tuple[str, int], **settings: Any) -> Path:
    """A table that writers have written to, one version for each batch."""
    for app, batch in batches:
        now = int(time.time() * 1000)
        properties = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(app, batch, now)])
        deltalake.write_deltalake(place, _ROWS, mode="append", commit_properties=properties, **settings)
    return place


def cleaned(place: Path) -> Path:
    """A checkpoint, and no version below it."""
    deltalake.DeltaTable(place).create_checkpoint()
    for file in sorted((place / "_delta_log").glob("*.json"))[:-1]:
        file.unlink()
    return place


def log_of(place: Path) -> Path:
    return place / "_delta_log"


@pytest.mark.parametrize("clean", [False, True])
def test_transactions_are_those_that_delta_rs_finds(clean: bool, tmp_path: Path) -> None:
    place = table_of(tmp_path / "table", (QUERY, 0), (OTHER, 7), (QUERY, 1), ("a name", 3))
    if clean:
        cleaned(place)
        table_of(place, (QUERY, 2))
    log = read_sink(str(place))
    assert log.kind is SinkKind.DELTA
    asked = deltalake.DeltaTable(place)
    found = {one.app_id: one.last_batch for one in log.writers}
    assert found == {app: asked.transaction_version(app) for app in (QUERY, OTHER, "a name")}
    assert found[QUERY] == 1 + clean
    assert not any(one.expired for one in log.writers)


def test_the_last_transaction_counts_and_not_the_highest(tmp_path: Path) -> None:
    place = table_of(tmp_path / "table", (QUERY, 5), (QUERY, 2))
    assert [one.last_batch for one in read_sink(str(place)).writers] == [2]
    assert deltalake.DeltaTable(place).transaction_version(QUERY) == 2


def test_batches_that_the_table_passed_over(tmp_path: Path) -> None:
    place = table_of(tmp_path / "table", (QUERY, 0), (OTHER, 9), (QUERY, 1), (QUERY, 4), (QUERY, 6), (QUERY, 5))
    assert {one.app_id: one.gaps for one in read_sink(str(place)).writers} == {QUERY: ((2, 3),), OTHER: ()}
    cleaned(place)
    table_of(place, (QUERY, 8))
    assert read_sink(str(place)).writers[0].gaps == ((6, 7),), "of what the log still has"


def test_a_batch_that_the_table_lacks_below_later_ones(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    query = query_of(checkpoint)
    place = table_of(tmp_path / "table", *((query, batch) for batch in (0, 1, 2, 4, 5)))
    run = ckpt("inspect", checkpoint, "--sink", place, "-o", "json")
    (finding,) = [one for one in run.json()["findings"] if one["code"] == "CKPT412"]
    assert (run.exit_code, run.json()["sink"]["lacks"]) == (1, [3, 3])
    assert "lacks the committed batch 3, but has batch 5" in finding["detail"]
    assert "RESTORE the table to its version after batch 2" in finding["remedy"]
    assert "--batch 2 --new-id" in finding["remedy"]


@pytest.mark.parametrize(
    "content", ["", 'v1\n{"path":"file:/x","si', "v1" + "\n{}" * 40_000], ids=["empty", "cut", "long"]
)
def test_an_entry_of_a_file_sink_that_cannot_be_read(content: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    log = Path(files(tmp_path / "out", "", 5)) / "_spark_metadata"
    whole = ckpt("inspect", checkpoint, "--sink", log.parent, "-o", "json").json()
    assert not [one for one in whole["findings"] if one["code"] == "CKPT405"]
    (log / "4").write_text(content)
    run = ckpt("inspect", checkpoint, "--sink", log.parent, "-o", "json")
    (finding,) = [one for one in run.json()["findings"] if one["code"] == "CKPT405"]
    assert run.exit_code == 1
    assert "has 4, which cannot be read" in finding["detail"]
    step, *_ = finding["advice"]["steps"]
    assert [each["do"]["do"]["value"] for each in (step, *step["alternatives"])] == ["put-back", "move"]
    assert "_spark_metadata/4" in finding["remedy"]
    assert "--to-batch 3" in finding["remedy"]


def test_an_expired_transaction_is_forgotten(tmp_path: Path) -> None:
    setting = {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    place = table_of(tmp_path / "table", (QUERY, 5), (OTHER, 1), configuration=setting)
    first = log_of(place) / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "txn" in action:
            action["txn"]["lastUpdated"] -= 2 * 3600 * 1000
    first.write_text("\n".join(map(json.dumps, actions)))
    log = read_sink(str(place))
    assert {one.app_id: one.expired for one in log.writers} == {QUERY: True, OTHER: False}
    assert deltalake.DeltaTable(place).transaction_version(QUERY) is None


@pytest.mark.parametrize("checkpointed", [False, True])
def test_batches_that_a_restore_took_back(checkpointed: bool, tmp_path: Path) -> None:
    place = table_of(tmp_path / "table", *((QUERY, batch) for batch in range(4)), (OTHER, 0))
    deltalake.DeltaTable(place).restore(1)
    if checkpointed:  # as Delta does
        deltalake.DeltaTable(place).create_checkpoint()
    table_of(place, (OTHER, 1))
    log = read_sink(str(place))
    assert {one.app_id: (one.last_batch, one.taken_back) for one in log.writers} == {
        QUERY: (3, (2, 3)),
        OTHER: (1, (0, 0)),
    }


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("interval 30 days", 30 * 86_400_000),
        ("INTERVAL 1 week 2 hours", 7 * 86_400_000 + 7_200_000),
        ("1.5 seconds", 1500),
        ("interval 1 month", None),
        ("a while", None),
        ("", None),
        ("interval", None),
    ],
)
def test_how_long_transactions_count(text: str, ms: float | None) -> None:
    assert parse_retention_ms(text) == ms


def test_how_long_they_count_is_unknown(tmp_path: Path) -> None:
    setting = {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    place = table_of(tmp_path / "table", (QUERY, 5), configuration=setting)
    first = log_of(place) / f"{0:020}.json"
    first.write_text(first.read_text().replace("interval 1 hours", "as long as it takes"))
    assert "as long as it takes" in str(read_sink(str(place)).unknown)


def _name(version: int, rest: str = "json") -> str:
    return f"{version:020}.{rest}"


def test_the_newest_complete_checkpoint_is_used() -> None:
    names = [_name(version) for version in range(3, 9)]
    whole = [_name(4, f"checkpoint.{part:010}.{2:010}.parquet") for part in (1, 2)]
    half = [_name(6, f"checkpoint.{1:010}.{2:010}.parquet")]
    found = choose_segment([*names, *whole, *half, "_last_checkpoint", _name(4, "crc")])
    assert found.checkpoint == tuple(whole)
    assert found.commits == tuple(_name(version) for version in range(5, 9))
    v2 = _name(7, f"checkpoint.{QUERY}.json")
    assert choose_segment([*names, *whole, v2]).checkpoint == (v2,)


@pytest.mark.parametrize("names", [[], ["_last_checkpoint"], [_name(1)], [_name(0), _name(2)]])
def test_a_log_with_a_gap_is_not_read(names: list[str]) -> None:
    with pytest.raises(Damaged):
        choose_segment(names)


def test_a_checkpoint_of_version_2_in_json(tmp_path: Path) -> None:
    place = table_of(tmp_path / "table", (QUERY, 0), (QUERY, 1))
    lines = [file.read_text().rstrip() for file in sorted(log_of(place).glob("*.json"))]
    for file in log_of(place).glob("*.json"):
        file.unlink()
    (log_of(place) / _name(1, f"checkpoint.{OTHER}.json")).write_text("\n".join(lines))
    assert [one.last_batch for one in read_sink(str(place)).writers] == [1]


def _cut_short(log: Path) -> None:
    newest = log / _name(1)
    newest.write_text(newest.read_text().replace('"version":1', '"version":'))


def _no_parquet(log: Path) -> None:
    (log / _name(1, "checkpoint.parquet")).write_bytes(b"PAR1 is how it begins")


def _other_parquet(log: Path) -> None:
    parquet.write_table(pa.table({"txn": ["1"]}), log / _name(1, "checkpoint.parquet"))


def _in_a_catalog(log: Path) -> None:
    (log / "_staged_commits").mkdir()
    (log / "_staged_commits" / f"{2:020}.{OTHER}.json").write_text("{}")


def _lost(log: Path) -> None:
    (log / _name(0)).unlink()


@pytest.mark.parametrize("damage", [_cut_short, _no_parquet, _other_parquet, _in_a_catalog, _lost])
def test_of_a_damaged_table_nothing_is_said(damage: Any, tmp_path: Path, ckpt: Ckpt, copy_of: CopyOf) -> None:
    place = table_of(tmp_path / "table", (QUERY, 0), (QUERY, 1))
    damage(log_of(place))
    log = read_sink(str(place))
    assert log.unknown is not None
    assert log.writers == ()
    checkpoint = copy_of("kafka-4.2")
    run = ckpt("inspect", checkpoint, "--sink", place, "-o", "json")
    if damage is _in_a_catalog:
        assert (run.json()["sink"]["outcome"], run.exit_code) == ("unknown", 0)
        return
    assert (run.json()["sink"]["outcome"], run.exit_code) == ("unreached", 3)
    with pytest.raises(StorageError, match="cannot be read"):
        ask_sink(str(place), str(checkpoint), {})


def test_the_log_of_a_file_sink(tmp_path: Path) -> None:
    log = tmp_path / "out" / "_spark_metadata"
    log.mkdir(parents=True)
    assert read_sink(str(tmp_path / "out")).last_batch is None
    for name in ("8", "9.compact", "10", "11", ".12.tmp", "x"):
        (log / name).write_text("v1")
    found = read_sink(str(tmp_path / "out"))
    assert (found.kind, found.last_batch, found.hole) == (SinkKind.FILE, 11, None)
    remove(log / "10")
    assert read_sink(str(tmp_path / "out")).hole == "10"


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (("data",), "neither _delta_log nor _spark_metadata"),
        (("_delta_log", "_spark_metadata"), "which of them"),
        ((".hoodie",), "Hudi"),
    ],
)
def test_what_cannot_be_known_is_said(folders: tuple[str, ...], words: str, tmp_path: Path) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    log = read_sink(str(tmp_path))
    assert log.kind is SinkKind.UNKNOWN
    assert words in str(log.unknown)


def test_kafka_is_not_asked(ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("inspect", copy_of("kafka-4.2"), "--sink", "kafka://192.0.2.1:9092/orders", "-o", "json")
    assert run.exit_code == 0
    assert run.json()["sink"]["kind"] == "kafka"
    assert run.json()["sink"]["outcome"] == "accepts"
    assert "then in it twice" in run.json()["sink"]["said"]


def test_nothing_there(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_sink(str(tmp_path / "nothing"))
    run = ckpt("inspect", copy_of("kafka-4.2"), "--sink", tmp_path / "nothing")
    assert run.exit_code == 3
    assert "nothing" in run.unreached()


@pytest.mark.slow
def test_out_of_reach(ckpt: Ckpt, copy_of: CopyOf) -> None:
    place = "s3://bucket/table?endpoint_override=127.0.0.1:9&scheme=http&region=x&access_key=a&secret_key=b"
    with pytest.raises(StorageError):
        read_sink(place)
    run = ckpt("inspect", copy_of("kafka-4.2"), "--sink", place)
    assert run.exit_code == 3
    assert "secret_key=b" not in run.unreached()


def test_the_first_line_of_preflight_names_what_deserves_a_look(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    table = table_of(tmp_path / "table", (query_of(checkpoint), 3))
    page = ckpt("preflight", checkpoint, "--sink", table).stdout
    assert re.match("START: [^;]*; warning: ", " ".join(page.split()))


def test_text_of_a_table_gives_no_command(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("delta-4.2")
    remove(checkpoint / "metadata")
    place = table_of(tmp_path / "table", ("x`; touch y; `\x1b[31m", 3))
    run = ckpt("inspect", checkpoint, "--sink", place)
    assert "\x1b" not in run.stdout
    assert "touch" not in run.stdout
    shutil.rmtree(place)
    table_of(place, (QUERY, 3))
    assert f"--query-id {QUERY}" in ckpt("inspect", checkpoint, "--sink", place).stdout


LAST = 5  # batch of the sample kafka-4.2
STANDS = {  # the newest batch of the sink, whether batch 5 is committed: outcome, dropped, lacks, code
    (None, True): ("unknown-query", None, None, "CKPT414"),
    (3, True): ("lacks", None, [4, 5], "CKPT412"),
    (4, True): ("lacks", None, [5, 5], "CKPT412"),
    (5, True): ("continues", None, None, None),
    (6, True): ("drops", [6, 6], None, "CKPT411"),
    (8, True): ("drops", [6, 8], None, "CKPT411"),
    (3, False): ("lacks", None, [4, 4], "CKPT412"),
    (4, False): ("continues", None, None, None),
    (5, False): ("passes-over", None, None, "CKPT416"),
    (6, False): ("drops", [6, 6], None, "CKPT411"),
    (7, False): ("drops", [6, 7], None, "CKPT411"),
}


def sink_at(place: Path, kind: str, query: str, last: int | None) -> Path:
    """A sink that has a batch last: other queries have written to the table too."""
    if kind == "delta":
        return table_of(place, (OTHER, 99), *([(query, last)] if last is not None else []))
    return Path(files(place, query, last))


@pytest.mark.parametrize("kind", ["delta", "file"])
@pytest.mark.parametrize(("last", "committed"), STANDS)
def test_a_sink_is_compared_with_the_next_batch(
    kind: str, last: int | None, committed: bool, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of("kafka-4.2")
    if not committed:
        remove(checkpoint / "commits" / str(LAST))
    place = sink_at(tmp_path / "sink", kind, query_of(checkpoint), last)

    run = ckpt("inspect", checkpoint, "--sink", place, "-o", "json")

    outcome, dropped, lacks, code = STANDS[last, committed]
    if kind == "file" and last is None:
        outcome, lacks = "lacks", [0, 5]
    sink = run.json()["sink"]
    assert (sink["outcome"], sink["dropped"], sink["lacks"]) == (outcome, dropped, lacks)
    assert (sink["next_batch"], sink["last_batch"]) == (LAST + committed, last)
    found = {one["code"] for one in run.json()["findings"] if one["code"].startswith("CKPT41")}
    lacking = {"CKPT412": "CKPT413", "CKPT414": "CKPT413"} if kind == "file" else {}
    assert found == ({lacking.get(code, code)} if code else set())
    assert run.exit_code == (code is not None and code != "CKPT416")
    assert contract.disagreements(run.json()) == []
    assert str(place) in ckpt("inspect", checkpoint, "--sink", place).stdout.replace("\n", "")


def test_every_key_of_a_sink_is_used(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    query = query_of(checkpoint)
    seen = set()
    for last in (3, 8):
        place = table_of(tmp_path / str(last), (OTHER, 1), (query, last))
        if last == 8:
            deltalake.DeltaTable(place).restore(0)
        seen |= contract.keys_in(ckpt("inspect", checkpoint, "--sink", place, "-o", "json").json())
    assert {key for key in contract.shapes() if key.startswith("sink")} - seen == set()


def test_a_new_checkpoint_and_an_old_file_sink(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    place = sink_at(tmp_path / "sink", "file", "", 3)
    found = ckpt("inspect", tmp_path / "new", "--sink", place, "-o", "json").json()
    assert found["sink"]["dropped"] == [0, 3]
    (remedy,) = [one["remedy"] for one in found["findings"] if one["code"] == "CKPT411"]
    assert "Use a new output folder" in remedy


def test_state_of_a_batch_that_is_passed_over(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    remove(checkpoint / "commits" / str(last))
    place = sink_at(tmp_path / "sink", "delta", query_of(checkpoint), last)

    def codes() -> set[str]:
        found = ckpt("inspect", checkpoint, "--sink", place, "-o", "json").json()["findings"]
        return {one["code"] for one in found if one["code"].startswith("CKPT41")}

    assert codes() == {"CKPT416"}
    remove(checkpoint / "state" / "0" / "1" / f"{last + 1}.delta")
    assert codes() == {"CKPT417"}


@pytest.mark.parametrize("upload", USUAL, indirect=True)
def test_sinks_on_remote_storage(upload: Upload, tmp_path: Path) -> None:
    table = cleaned(table_of(tmp_path / "table", (QUERY, 0), (OTHER, 7), (QUERY, 1)))
    table_of(table, (OTHER, 8))
    log = read_sink(*upload(table))
    assert {one.app_id: one.last_batch for one in log.writers} == {QUERY: 1, OTHER: 8}
    assert read_sink(*upload(sink_at(tmp_path / "files", "file", "", 12))).last_batch == 12


def test_storage_options_are_those_of_the_checkpoint_where_both_are_of_one_kind(tmp_path: Path) -> None:
    local = str(sink_at(tmp_path / "sink", "file", "", 2))
    options = {"no-such-option": "x"}
    log = ask_sink(local, "s3://bucket/checkpoint", options)
    assert log is not None
    assert log.last_batch == 2
    with pytest.raises(UsageError):
        ask_sink("s3://bucket/table", "s3a://bucket/checkpoint", options)
    assert ask_sink(None, "s3://bucket/checkpoint", options) is None


@pytest.mark.parametrize(
    ("settings", "newer", "severity"),
    [
        ({}, True, "note"),
        ({}, None, "warning"),  # a batch runs again: its rows may be in the table
        ({}, False, "warning"),  # the table may have been created again
        ({"configuration": {"delta.setTransactionRetentionDuration": "interval 1 days"}}, True, "warning"),
    ],
)
def test_a_table_that_nobody_wrote_to_by_id_is_no_reason_to_worry(
    settings: dict[str, Any], newer: bool | None, severity: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    """A MERGE in foreachBatch leaves no batch ids, whatever query it is in."""
    checkpoint = copy_of("kafka-4.2")
    deltalake.write_deltalake(tmp_path / "table", _ROWS, **settings)
    if newer is None:
        remove(checkpoint / "commits" / "5")
    if newer is not False:
        later = int(time.time() * 1000) + 60_000
        for path in (checkpoint / "offsets").glob("[0-9]*"):
            edit_metadata(path, lambda planned: planned.update(batchTimestampMs=later))
    run = ckpt("inspect", checkpoint, "--sink", tmp_path / "table", "-o", "json")
    (finding,) = [finding for finding in run.json()["findings"] if finding["code"] == "CKPT414"]
    assert finding["severity"] == severity
    assert ("no query ever wrote to it by batch id" in finding["detail"]) == (newer is not False and not settings)
    assert run.exit_code == (0 if severity == "note" else 1)


def test_data_files_of_a_file_sink_without_its_log_are_a_warning(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    """Readers of such a folder fail after the next start: seeds 106 and 240 of `tests/laws/operator`."""
    place = tmp_path / "out"
    place.mkdir()
    (place / "part-00000-4c54f2b8-36ab-4bba-bad1-603dc22d896a-c000.json").write_text("{}\n")
    checkpoint = copy_of("stateless-4.2")

    def codes() -> set[str]:
        document = ckpt("inspect", checkpoint, "--sink", place, "-o", "json").json()
        return {finding["code"] for finding in document["findings"] if finding["severity"] == "warning"}

    assert codes() == {"CKPT427"}
    (place / "_SUCCESS").touch()  # a batch job wrote them, such as one of foreachBatch
    assert codes() == set()
