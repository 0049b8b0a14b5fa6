"""A described query compared with a checkpoint: sources, settings and versions, where `recorded` has no case."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt import settings
from ckpt.advice import Advice
from ckpt.inspection.preflight import PlannedStart, Readiness, judge_start
from ckpt.model import Json
from ckpt.query.compare_checkpoint import fits_schema
from ckpt.query.description import DescribedSource, QueryDescription
from ckpt.query.reader_options import keep_options, keep_reader, list_affecting
from tests.conftest import Ckpt, CopyOf
from tests.live.delta.cases import remove
from tests.support.files import rewrite
from tests.support.places import ROOT

ORDERS = DescribedSource("kafka", ("orders",))
KAFKA = QueryDescription(ckpt.Spark.V4_2, "append", (ORDERS,), (), None, None, {})


def judged(checkpoint: Path | str, query: QueryDescription, spark: ckpt.Spark | None = None) -> Readiness:
    return judge_start(ckpt.open_checkpoint(str(checkpoint)), PlannedStart(spark, query=query))


def codes(found: Readiness) -> list[str]:
    return [one.finding.diagnosis.code for one in (*found.holds, *found.warnings)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (ORDERS, []),
        (DescribedSource("kafka", None), []),  # a pattern
        (DescribedSource("kafka", ("orders", "refunds")), []),
        (DescribedSource("kafka", ("refunds",)), ["CKPT444"]),
        (DescribedSource("kafka", ("refunds",), fail_on_data_loss=False), ["CKPT444"]),
        (DescribedSource("delta"), ["CKPT433"]),
        (DescribedSource("kinesis"), []),
    ],
)
def test_a_source_is_compared_with_its_offset(source: DescribedSource, expected: list[str]) -> None:
    found = judged("sample_checkpoints/kafka-4.2", replace(KAFKA, sources=(source,)))

    assert codes(found) == expected
    assert found.go is not bool(expected)
    assert any("kinesis" in str(one) for one in found.unknown) == (source.kind == "kinesis")


def test_two_topics_that_have_changed_places(copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    for path in (checkpoint / "offsets").iterdir():
        if path.name.isdigit():
            rewrite(path, lambda text: text + "\n" + text.rpartition("\n")[2].replace("orders", "refunds"))
    both = (ORDERS, DescribedSource("kafka", ("refunds",)))

    assert codes(judged(checkpoint, replace(KAFKA, sources=both))) == []
    swapped = judged(checkpoint, replace(KAFKA, sources=both[::-1]))
    assert codes(swapped) == ["CKPT433", "CKPT433"]
    assert "have they been swapped?" in swapped.verdict
    assert codes(judged(checkpoint, KAFKA)) == ["CKPT432"]


def test_a_topic_that_is_given_up_is_removed_by_the_command_that_is_advised(copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        rewrite(path, lambda text: text.replace('{"orders":', '{"refunds":{"0":7},"orders":'))
    (held,) = judged(checkpoint, KAFKA).holds

    (remove,) = (step.call for step in (held.advice or Advice()).all_steps() if step.call)
    options: dict[str, Any] = dict(remove.options)
    plan, _ = ckpt.offsets_set(str(checkpoint), **options)
    assert (held.finding.diagnosis.code, remove.name, plan.refused) == ("CKPT444", "offsets_set", None)
    assert plan.moved[0].new.text == '{"orders":{"0":51,"1":49}}'

    (held,) = judged(checkpoint, replace(KAFKA, sources=(DescribedSource("kafka", ("others",)),))).holds
    assert [step.call for step in (held.advice or Advice()).all_steps()] == [None]


FILES = QueryDescription(ckpt.Spark.V4_2, "append", (), (), None, None, {})
"""Of a file source."""


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (DescribedSource("file", path="file:/tmp/ckpt-samples/inputs/file-source"), (None, None)),
        (DescribedSource("file", path="/tmp/ckpt-samples/inputs"), (None, None)),
        (DescribedSource("file", path="/tmp/ckpt-samples/inputs/file"), ("CKPT443", "CKPT443")),
        (DescribedSource("file", path="/tmp/*/other"), (None, None)),
        (DescribedSource("file", path="/other"), ("CKPT465", "CKPT465")),
        (DescribedSource("file", path="s3a://bucket/tmp/ckpt-samples/inputs"), ("CKPT465", "CKPT465")),
        (DescribedSource("file", path="/other", partitions=True), ("CKPT443", "CKPT465")),
        (DescribedSource("file", path="/other", recursive=True), ("CKPT443", "CKPT443")),
    ],
)
def test_a_folder_is_compared_with_the_files_of_the_latest_batch(
    source: DescribedSource, expected: tuple[str | None, str | None], planned: bool, copy_of: CopyOf
) -> None:
    """Spark compares them as texts: ``file-source`` begins with ``file``."""
    checkpoint = copy_of("file-source-4.2")
    latest = max(int(one.name) for one in (checkpoint / "offsets").glob("[0-9]*"))
    if planned:
        remove(checkpoint / "commits" / str(latest))
    else:
        shutil.copyfile(checkpoint / "commits" / "0", checkpoint / "commits" / str(latest))
    found = judged(checkpoint, replace(FILES, sources=(source,)))
    assert [one for one in codes(found) if one in ("CKPT443", "CKPT465")] == [*filter(None, [expected[planned]])]
    assert found.go is (expected[planned] != "CKPT465")


def test_two_folders_that_have_changed_places(copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-4.2")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        rewrite(path, lambda text: text + "\n" + text.splitlines()[-1])
    shutil.copytree(checkpoint / "sources" / "0", checkpoint / "sources" / "1")
    for path in (checkpoint / "sources" / "1").glob("[0-9]*"):
        rewrite(path, lambda text: text.replace("file-source/", "second/"))
    first, second = (
        DescribedSource("file", path=f"/tmp/ckpt-samples/inputs/{name}") for name in ("file-source", "second")
    )
    assert "CKPT433" not in codes(judged(checkpoint, replace(FILES, sources=(first, second))))
    swapped = judged(checkpoint, replace(FILES, sources=(second, first)))
    assert codes(swapped)[:2] == ["CKPT433", "CKPT433"]
    assert "source 1 of the checkpoint" in swapped.verdict


def named(copy_of: CopyOf, old: str = "orders", *, version: int = 2) -> Path:
    """A checkpoint of Kafka whose one source has a name, or none."""
    checkpoint = copy_of("kafka-4.2")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        _, metadata, offset = path.read_text().splitlines()
        path.write_text(f"v{version}\n{metadata}\n" + (f"{old}:{offset}" if version == 2 else offset))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return checkpoint


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((replace(ORDERS, name="orders"),), []),
        ((replace(ORDERS, name="orders"), DescribedSource("kafka", ("refunds",), name="refunds")), []),
        ((DescribedSource("kafka", ("refunds",), name="refunds"),), []),
        ((replace(ORDERS, name="sales"),), ["CKPT482"]),
        ((replace(ORDERS, name="orders"), DescribedSource("kafka", ("x",), name="x")), ["CKPT483"]),
        ((replace(ORDERS, name="orders", topics=("refunds",)),), ["CKPT444"]),
        ((DescribedSource("delta", name="orders"),), ["CKPT433"]),
        ((ORDERS,), ["CKPT484"]),
    ],
)
def test_sources_with_names_are_compared_by_name(
    sources: tuple[DescribedSource, ...], expected: list[str], copy_of: CopyOf
) -> None:
    checkpoint = named(copy_of)
    (checkpoint / "sources" / "x").mkdir(parents=True)
    (checkpoint / "sources" / "x" / "0").write_text("v1")

    readiness = judged(checkpoint, replace(KAFKA, sources=sources))
    assert [code for code in codes(readiness) if code.startswith(("CKPT43", "CKPT44", "CKPT48"))] == expected


def test_names_for_a_checkpoint_without_names(copy_of: CopyOf) -> None:
    query = replace(KAFKA, sources=(replace(ORDERS, name="orders"),))
    assert codes(judged("sample_checkpoints/kafka-4.2", query)) == ["CKPT484"]
    numbered = named(copy_of, "0")
    assert "CKPT484" in codes(judged(numbered, query))
    assert "CKPT432" not in codes(judged(numbered, replace(KAFKA, sources=(ORDERS, ORDERS))))


def test_a_description_of_another_version_or_of_other_settings_is_not_compared() -> None:
    query = ckpt.types.QueryDescription.read("docs/query.json")
    sample = "sample_checkpoints/aggregation-hdfs-4.2"
    assert codes(judged(sample, query)) == ["CKPT435"]

    for other in (
        judged(sample, query, ckpt.Spark.V4_3),
        judged(sample, replace(query, settings={settings.AGGREGATION_FORMAT: "1"})),
    ):
        assert other.go
        assert any("described" in str(one) for one in other.unknown)
    unplanned = judged(sample, replace(query, operators=None, unplanned="it throws"))
    assert any("it throws" in str(one) for one in unplanned.unknown)
    unsupported = judged(sample, replace(query, operators=None, unsupported="no such mode"))
    assert codes(unsupported) == ["CKPT437"]


def test_a_new_checkpoint_fits_every_query(tmp_path: Path) -> None:
    assert judged(tmp_path, ckpt.types.QueryDescription.read("docs/query.json")).go


def test_a_page_says_what_is_not_compared(ckpt: Ckpt) -> None:
    page = ckpt("preflight", "sample_checkpoints/kafka-4.2", "--expect", ROOT / "docs" / "query.json").stdout

    assert "see CKPT433" in " ".join(page.partition("\n\n")[0].split())
    assert "the query: " not in page.partition("Not checked")[2]
    assert "whether the query fits the state" not in page


def struct(*types: object, nullable: bool = True) -> dict[str, object]:
    fields = [{"name": f"_{i}", "type": one, "nullable": nullable, "metadata": {}} for i, one in enumerate(types)]
    return {"type": "struct", "fields": fields}


def array(element: object, *, nulls: bool) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": nulls}


def mapped(value: object, *, nulls: bool) -> dict[str, object]:
    return {"type": "map", "keyType": "long", "valueType": value, "valueContainsNull": nulls}


@pytest.mark.parametrize(
    ("new", "old", "compatible"),
    [
        (struct("long"), struct("long"), True),
        (struct("long", nullable=False), struct("long"), True),
        (struct("long"), struct("long", nullable=False), False),
        (struct("long"), struct("integer"), False),
        (struct("long"), struct("long", "long"), False),
        (struct("long", "string"), struct("string", "long"), False),
        (struct(struct("long")), struct(struct("long", nullable=False)), False),
        (array("long", nulls=False), array("long", nulls=True), True),
        (array("long", nulls=True), array("long", nulls=False), False),
        (array(struct("long"), nulls=True), array(struct("date"), nulls=True), False),
        (mapped("long", nulls=True), mapped("long", nulls=False), False),
        (mapped("long", nulls=False), mapped("long", nulls=True), True),
        (array("long", nulls=True), struct("long"), False),
    ],
)
def test_types_fit_as_spark_compares_them(new: object, old: object, compatible: bool) -> None:
    """As `DataType.equalsIgnoreNameAndCompatibleNullability` has it: names do not count."""
    assert fits_schema(new, old) is compatible  # type: ignore[arg-type]


SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"name": "n", "type": "integer"},
        {"name": "days", "type": {"type": "array", "elementType": "date", "containsNull": True}},
        {"name": "bad", "type": "string"},
    ],
}
TIMES: Json = {"type": "struct", "fields": [{"name": "at", "type": "timestamp"}]}
SETTINGS = {"zone": "Europe/Berlin", "parser": "", "corrupt": "_corrupt_record"}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"Mode": "DROPMALFORMED", "multiLine": "TRUE"}, {"mode": "dropmalformed", "multiline": "true"}),
        ({"mode": "permissive", "multiLine": "False", "sep": ",", "charset": "utf-8"}, {}),
        ({"delimiter": ";"}, {"sep": "41b805ea"}),
        ({"password": "hush", "fs.s3a.secret.key": "hush", "maxFilesPerTrigger": "3", "path": "/a"}, {}),
        ({"columnNameOfCorruptRecord": "bad"}, {"columnnameofcorruptrecord": "bad"}),
        ({"columnNameOfCorruptRecord": "hush"}, {}),
        ({"kafka.isolation.level": "read_committed"}, {"kafka.isolation.level": "read_committed"}),
    ],
)
def test_options_that_decide_rows_and_values_are_kept(options: dict[str, str], kept: dict[str, str]) -> None:
    assert keep_options(options, SCHEMA) == kept


def test_no_text_of_a_user_is_kept() -> None:
    kept = keep_options(dict.fromkeys(("nullValue", "comment", "timestampFormat", "avroSchema"), "hush"), SCHEMA)
    assert len(kept) == 4
    assert "hush" not in kept.values()


def test_a_reader_falls_back_on_its_session() -> None:
    assert keep_reader("json", {}, TIMES, **SETTINGS) == {"format": "json", "timezone": "Europe/Berlin"}
    assert keep_reader("json", {"timeZone": "Etc/UTC"}, TIMES, **SETTINGS) == {"format": "json", "timezone": "UTC"}
    assert keep_reader("parquet", {}, TIMES, **SETTINGS) == {"format": "parquet"}
    assert keep_reader("csv", {"timestampFormat": "y"}, SCHEMA, **SETTINGS) == {"format": "csv"}
    legacy = keep_reader("csv", {}, SCHEMA, **{**SETTINGS, "parser": "legacy", "corrupt": "bad"})
    assert legacy == {"format": "csv", "timeparserpolicy": "legacy", "columnnameofcorruptrecord": "bad"}


def test_an_option_affects_values_of_its_types() -> None:
    options = {"dateformat": "1f", "mode": "dropmalformed", "pathglobfilter": "1f"}
    assert list_affecting(options, {"type": "array", "elementType": "date"}, "days").keys() == {"dateformat", "mode"}
    assert list_affecting(options, "integer", "n").keys() == {"mode"}
