"""Files that can be read and say what is not so: what a look says. What Spark did is in ``restart/oracle``."""

import json
import shutil

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases import CASES
from tests.restart.oracle.cases.model import copy, delete, replace
from tests.restart.oracle.cases.untrue import FAR, LONG, exchange
from tests.support.places import SAMPLES
from tests.support.spark import mutations

CASE = {case.name: case for case in CASES}


def findings(ckpt: Ckpt, checkpoint: object, *words: object) -> dict[str, str]:
    """The severity of each finding, by its code."""
    found = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json", *words).json()["findings"]
    return {finding["code"]: finding["severity"] for finding in reversed(found)}


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["aggregation-hdfs-3.5", "aggregation-changelog-4.2", "join-hdfs-3.5"])
def test_exchanged_partitions_show_in_names_and_in_rows(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample, *exchange("state/0/0", "state/0/1"))
    assert findings(ckpt, checkpoint)["CKPT330"] == "error"
    deep = findings(ckpt, checkpoint, "--deep")
    assert (deep["CKPT324"], deep["CKPT330"]) == ("error", "error")
    assert ckpt("preflight", checkpoint).exit_code == 1


@pytest.mark.parametrize("earlier", [8, 5])
def test_offsets_that_are_a_copy_of_earlier_ones(earlier: int, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", copy(f"offsets/{earlier}", "offsets/9") | {"keep_crc": True})
    assert findings(ckpt, checkpoint)["CKPT128"] == "error"
    assert ckpt("preflight", checkpoint).exit_code == 1
    advice = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    assert [(step["do"], (step["command"] or [])[3:]) for step in advice][:2] == [
        ("put-back", []),
        ("run", ["--to-batch", "8", "--replay", "new"]),
    ]


def test_such_a_copy_that_may_be_meant_or_that_no_start_reads(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", copy("offsets/8", "offsets/9"))
    assert findings(ckpt, checkpoint)["CKPT128"] == "note"
    shutil.rmtree(checkpoint)
    past = copy("offsets/4", "offsets/5") | {"keep_crc": True}
    assert "CKPT128" not in findings(ckpt, copy_of("aggregation-hdfs-4.2", past))


def test_rows_without_a_schema_are_no_all_clear(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5", *delete("state/0/0/_metadata/schema"))
    assert "CKPT331" not in findings(ckpt, checkpoint)
    assert findings(ckpt, checkpoint, "--deep")["CKPT331"] == "warning"


@pytest.mark.parametrize("sample", ["aggregation-hdfs-3.5", "dedup-hdfs-4.0", "limit-hdfs-4.2"])
def test_void_is_compared_with_rows(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    assert "CKPT302" not in findings(ckpt, checkpoint, "--deep")
    schema = checkpoint / "state/0/0/_metadata/schema"
    if b'"long"' in schema.read_bytes():
        mutations.apply(checkpoint, [replace("state/0/0/_metadata/schema", '"long"', '"void"')])
        assert findings(ckpt, checkpoint, "--deep")["CKPT302"] == "error"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("aggregation-changelog-4.2-recorded-multipleWatermarkPolicy=banana", "CKPT115"),
        ("aggregation-changelog-4.2-recorded-stateStore.compression.codec=zstd", "CKPT116"),
        ("aggregation-changelog-4.2-recorded-stateStore.providerClass=x.y.Z", "CKPT117"),
        ("aggregation-format2-4.2-ids-two-for-a-partition", "CKPT118"),
        ("two-sources-offsets-v2-4.2-last-line-gone", "CKPT119"),
        ("aggregation-changelog-4.2-operator-id-7", "CKPT329"),
        ("aggregation-rocksdb-4.2-operator-called-dedupe", "CKPT334"),
        ("dedup-hdfs-4.0-operator-called-stateStoreSave", "CKPT334"),
        ("join-hdfs-3.5-v2-after-v1-first-only", "CKPT119"),
        ("tws-rocksdb-4.2-newest-output-mode-edited", "CKPT336"),
        ("tws-rocksdb-4.2-newest-time-mode-edited", "CKPT336"),
        ("tws-changelog-4.0-newest-name-edited", "CKPT336"),
    ],
)
def test_a_start_is_held(name: str, code: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE[name]
    checkpoint = copy_of(case.sample, *case.mutations)
    assert code in findings(ckpt, checkpoint, "--spark", "4.2")
    assert ckpt("preflight", checkpoint, "--spark", "4.2").exit_code == 1
    assert code not in findings(ckpt, copy_of(case.sample, to="intact"), "--spark", "4.2")


@pytest.mark.parametrize("name", ["text-after-the-offset", "two-offsets-in-a-line"])
def test_text_after_an_offset_is_nothing(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE[f"stateless-3.5-{name}"]
    assert ckpt("inspect", copy_of(case.sample, *case.mutations)).exit_code == 0


def test_ids_of_an_operator_that_was_never_there_are_nothing(ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE["aggregation-format2-4.2-ids-of-one-operator-more"]
    assert ckpt("inspect", copy_of(case.sample, *case.mutations)).exit_code == 0


@pytest.mark.parametrize(
    ("kind", "ahead", "code"),
    [("delta", 2, "CKPT332"), ("snapshot", 2, "CKPT306"), ("delta", 40, "CKPT306")],
)
def test_state_ahead_is_an_error_where_it_is_read(
    kind: str, ahead: int, code: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    sample = "aggregation-hdfs-4.2"
    newest = max(int(path.stem) for path in (SAMPLES / sample / "state/0/0").glob(f"[0-9]*.{kind}"))
    version = max(int(path.name) for path in (SAMPLES / sample / "offsets").glob("[0-9]*")) + 1 + ahead
    checkpoint = copy_of(sample, copy(f"state/0/0/{newest}.{kind}", f"state/0/0/{version}.{kind}"))
    severity = {"CKPT306": "error", "CKPT332": "warning"}[code]
    assert findings(ckpt, checkpoint) | {code: severity} == findings(ckpt, checkpoint)


@pytest.mark.parametrize(("time_ms", "words"), [(0, "unread"), (FAR, "too old"), (LONG, "too old")])
def test_times_that_no_file_has_are_named(time_ms: int, words: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    sample, entry = "file-source-4.2", "sources/0/11"
    assert "CKPT408" not in findings(ckpt, copy_of(sample, to="intact"))
    line = json.loads((SAMPLES / sample / entry).read_text().splitlines()[1])
    checkpoint = copy_of(sample, replace(entry, f'"timestamp":{line["timestamp"]}', f'"timestamp":{time_ms}'))
    found = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    assert [words in finding["detail"] for finding in found if finding["code"] == "CKPT408"] == [True]


@pytest.mark.parametrize(("watermark_ms", "shown"), [(FAR, "2100-01-01T00:00:00Z"), (LONG, f"{LONG} ms")])
def test_a_watermark_in_the_future_is_named_with_its_batch(
    watermark_ms: int, shown: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    sample = "windowed-aggregation-hdfs-4.2"
    last = max(int(path.name) for path in (SAMPLES / sample / "commits").glob("[0-9]*"))
    text = json.loads((SAMPLES / sample / f"commits/{last}").read_text().splitlines()[1])
    old = f'"nextBatchWatermarkMs":{text["nextBatchWatermarkMs"]}'
    checkpoint = copy_of(sample, replace(f"commits/{last}", old, f'"nextBatchWatermarkMs":{watermark_ms}'))
    found = {one["code"]: one for one in ckpt("inspect", checkpoint, "-o", "json").json()["findings"]}
    assert found["CKPT214"]["severity"] == "warning"
    assert f"since batch {last}; it is {shown}" in found["CKPT214"]["detail"]
    assert f"--to-batch {last - 1}`" in found["CKPT214"]["remedy"]
    assert ckpt("rewind", checkpoint, "--to-batch", last - 1).exit_code == 1


@pytest.mark.parametrize(
    "name",
    [
        "aggregation-rocksdb-4.2-store-called-other",
        "stateless-3.5-member-more",
        "stateless-3.5-member-more-uncommitted",
        "file-source-4.2-member-more",
        "named-sources-4.2-lines-exchanged",
        "named-sources-4.2-lines-exchanged-uncommitted",
        "join-v3-changelog-4.2-schema-void",
        "join-v3-changelog-4.2-schema-key-misspelt",
        "tws-rocksdb-4.2-older-output-mode-edited",
    ],
)
def test_no_start_is_held_over_what_spark_does_not_look_at(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE[name]
    checkpoint = copy_of(case.sample, *case.mutations)
    assert "error" not in findings(ckpt, checkpoint, "--deep", "--spark", "4.2").values()


@pytest.mark.slow
def test_a_schema_that_no_start_reads_is_named_where_no_row_fits_it(ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE["join-v3-changelog-4.2-schema-void"]
    checkpoint = copy_of(case.sample, *case.mutations)
    assert findings(ckpt, checkpoint, "--deep", "--spark", "4.2")["CKPT335"] == "warning"
    assert ckpt("relocate", checkpoint, "--apply", "--grace", 0).exit_code == 0
    assert findings(ckpt, checkpoint, "--deep", "--spark", "4.2")["CKPT302"] == "error"


def test_two_lines_in_another_order_are_the_same_ranges(ckpt: Ckpt, copy_of: CopyOf) -> None:
    case = CASE["named-sources-4.2-lines-exchanged-uncommitted"]
    document = ckpt("inspect", copy_of(case.sample, *case.mutations), "--spark", "4.2", "-o", "json").json()
    read = next(start for start in document["restart"] if start["progress"] == "sync")["sources"]
    assert [(r["from"]["offset"], r["to"]["offset"]) for r in read] == [(30, 40), (60, 80)]


def test_a_secret_in_a_line_without_a_name_is_masked(ckpt: Ckpt, copy_of: CopyOf) -> None:
    path = "offsets/3"
    checkpoint = copy_of("two-sources-offsets-v2-4.2")
    lines = (checkpoint / path).read_text().split("\n")
    (checkpoint / path).write_text("\n".join([*lines[:-1], '{"password":"hunter2secret"}']))
    for words in (("inspect",), ("offsets", "show"), ("preflight",)):
        assert "hunter2secret" not in ckpt(*words, checkpoint, "-o", "json").stdout
