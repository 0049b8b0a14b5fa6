"""Known bugs: the table is what was run, and a finding is where a checkpoint has what a bug needs, and nowhere else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import ckpt as library
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.bugs import Bug, find_bugs, is_nested, known_bugs, list_tried_releases
from ckpt.model import ColumnFamily, Json, Operator, Store
from docs.generate.bugs import bugs_page
from docs.generate.places import DOCS
from tests.conftest import Ckpt
from tests.inspection.bugs import cases, connector_cases
from tests.inspection.bugs.cases import NOT_IN_TABLE
from tests.inspection.bugs.connectors import FILE as CONNECTORS
from tests.inspection.bugs.record import AVOIDED_FILE, CONTINUED_FILE, read_answers
from tests.support.files import rewrite
from tests.support.places import GOLDENS, SAMPLES
from tests.support.spark.samples import SAMPLES as WRITTEN

ANSWERS = read_answers()
CASES = cases.CASES | connector_cases.CASES
RIGHT = cases.RIGHT | connector_cases.RIGHT
CONTINUED_RIGHT = cases.CONTINUED_RIGHT | connector_cases.CONTINUED_RIGHT
AVOIDED_RIGHT = cases.AVOIDED_RIGHT | connector_cases.AVOIDED_RIGHT
IDS = [bug.id for bug in known_bugs()]
OF_SPARK = [bug for bug in known_bugs() if not bug.connector]
OF_CONNECTORS = [bug for bug in known_bugs() if bug.connector]
FIRST_AND_LAST = ["3.5.0", "3.5.9"]
"""The releases of Spark 3.5 that a connector with releases of its own was run on."""


@pytest.mark.parametrize("bug", OF_SPARK, ids=lambda bug: bug.id)
def test_each_was_run_with_it_and_without(bug: Bug) -> None:
    for first, last, fixed in bug.ranges:
        for release in (first, last):
            assert ANSWERS[bug.id][release] != RIGHT[bug.id], release
            assert bug.range_on(release) == (first, last, fixed)
        assert ANSWERS[bug.id][fixed] == RIGHT[bug.id]
        assert bug.range_on(fixed) is None
    assert {*list_tried_releases()} == ANSWERS[bug.id].keys()


@pytest.mark.parametrize("bug", OF_CONNECTORS, ids=lambda bug: bug.id)
def test_each_of_a_connector_was_run_with_it_and_without(bug: Bug) -> None:
    """On the release of Spark of the same number, or on the first and the last of the minor version it goes with."""
    answers = read_answers(CONNECTORS)[bug.id]
    expected = set()
    for first, last, fixed in bug.ranges:
        for release in (first, last, fixed):
            for spark in FIRST_AND_LAST if bug.spark else [release]:
                expected.add(f"{spark} with {release}")
                assert (answers[f"{spark} with {release}"] == RIGHT[bug.id]) is (release == fixed), (spark, release)
    assert answers.keys() == expected


@pytest.mark.parametrize(
    ("bug", "release", "last"),
    [
        ("SPARK-53560", "3.5.3", "3.5.3"),
        ("SPARK-53560", "3.5.6", "3.5.3"),  # the registry does not have its connector
        ("SPARK-53560", "3.5.7", None),
        ("SPARK-53560", "4.0.0", "4.0.1"),
        ("SPARK-53560", "4.0.2", None),
        ("apache/iceberg#12988", "3.5.0", "1.9.2"),
        ("apache/iceberg#12988", "3.5.9", "1.9.2"),
        ("apache/iceberg#12988", "4.0.0", None),
        ("apache/iceberg#12988", "3.5", None),
        ("SPARK-50492", "3.5.4", None),
    ],
)
def test_a_release_of_spark_goes_with_releases_of_a_connector(bug: str, release: str, last: str | None) -> None:
    (entry,) = (each for each in known_bugs() if each.id == bug)
    bounds = entry.range_on(release)
    assert (bounds and bounds[1]) == last


def test_a_later_release_goes_on_as_its_finding_advises() -> None:
    pairs = {
        bug.id: {f"{last}, then {fixed}": CONTINUED_RIGHT[bug.id] for _, last, fixed in bug.ranges}
        for bug in known_bugs()
    }
    assert json.loads(CONTINUED_FILE.read_text()) == pairs


def test_what_avoids_a_bug_was_obeyed_on_the_last_release_with_it() -> None:
    """Each on the checkpoint that the bug was hit on: no other checkpoint, and no other state."""
    obeyed = {bug.id: {last: AVOIDED_RIGHT[bug.id] for _, last, _ in bug.ranges} for bug in known_bugs() if bug.avoid}
    assert json.loads(AVOIDED_FILE.read_text()) == obeyed


def test_what_did_not_show_is_not_in_the_table() -> None:
    assert {*CASES} == {*IDS} | NOT_IN_TABLE
    assert NOT_IN_TABLE.isdisjoint(IDS)


ICEBERG = '{"version":1,"snapshot_id":7,"position":0,"scan_all_files":false}'
CAN_HIT = {
    "join": {"SPARK-49829"},
    "dedup-within-watermark": {"SPARK-50492"},
    "pandas-with-state": {"SPARK-48934"},
    "two-sources": {"SPARK-47305"},
    "named-sources": {"SPARK-47305"},
    "named-file-sources": {"SPARK-47305"},
    "transform-with-state": {"SPARK-51690", "SPARK-52127", "SPARK-53870"},
    "transform-with-state-event-time": {"SPARK-53870"},
}
"""The bugs that each query of the samples can hit; the other queries can hit none."""


def test_found_where_a_checkpoint_has_what_it_needs_and_nowhere_else() -> None:
    releases = ["3.5.0", "3.5.1", "3.5.3", "4.0.0", "4.0.1", "4.1.0"]
    for sample in WRITTEN:
        bugs_found = {
            bug
            for finding in find_bugs(open_checkpoint(str(SAMPLES / sample.name)), releases)
            for bug in IDS
            if bug in finding.detail
        }
        assert bugs_found == CAN_HIT.get(sample.query, set()), sample.name


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize(("name", "stops"), [("77", True), ("7", True), ("6", False), ("07", False), ("x7", False)])
def test_a_folder_with_a_number_above_the_next_batch_is_found_in_either_log(
    log: str, name: str, *, stops: bool, tmp_path: Path
) -> None:
    """A folder with the number of a batch of before stops no start, and that of the next batch stops any release."""
    checkpoint = shutil.copytree(SAMPLES / "stateless-3.5", tmp_path / "checkpoint")
    (checkpoint / log / name).mkdir()
    details = [each.detail for each in find_bugs(open_checkpoint(str(checkpoint)), ["3.5.0"])]
    assert [detail for detail in details if "SPARK-46339" in detail] == details
    assert len(details) == stops


@pytest.mark.parametrize("committed", [False, True])
def test_a_planned_batch_of_a_kafka_source_is_found(*, committed: bool, tmp_path: Path) -> None:
    checkpoint = shutil.copytree(SAMPLES / "kafka-4.2", tmp_path / "checkpoint")
    if not committed:
        max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name)).unlink()
    found = [*find_bugs(open_checkpoint(str(checkpoint)), ["4.0.1", "4.1.0"])]
    assert [finding.detail.partition(":")[0] for finding in found] == [
        "Spark 4.0.1 with the Kafka connector 4.0.0 to 4.0.1 has SPARK-53560",
        "Spark 4.1.0 with the Kafka connector 4.1.0 to 4.1.2 has SPARK-57438",
    ][: 0 if committed else 2]


def test_an_iceberg_source_is_found_on_the_spark_that_its_releases_go_with(tmp_path: Path) -> None:
    checkpoint = shutil.copytree(SAMPLES / "stateless-3.5", tmp_path / "checkpoint")
    rewrite(checkpoint / "offsets" / "5", lambda text: text.rpartition("\n")[0] + f"\n{ICEBERG}")
    found = [*find_bugs(open_checkpoint(str(checkpoint)), ["3.5.9", "4.0.0"])]
    assert [finding.detail.partition(":")[0] for finding in found] == [
        "Spark 3.5.9 with Iceberg 1.4.3 has apache/iceberg#8980",
        "Spark 3.5.9 with Iceberg 1.4.3 to 1.9.2 has apache/iceberg#12260",
        "Spark 3.5.9 with Iceberg 1.4.3 to 1.9.2 has apache/iceberg#12988",
    ]
    assert "Iceberg 1.5.0 or a later" in str(found[0].advice)


def test_a_folder_above_a_batch_that_runs_again_stops_3_5_0_alone(tmp_path: Path) -> None:
    """Recorded as directory-offset-next-uncommitted: other releases run batch 5 again, and stop when they plan 6."""
    checkpoint = shutil.copytree(SAMPLES / "stateless-3.5", tmp_path / "checkpoint")
    (checkpoint / "commits" / "5").unlink()
    (checkpoint / "offsets" / "6").mkdir()
    assert [*find_bugs(open_checkpoint(str(checkpoint)), ["3.5.0"])]


@pytest.mark.parametrize(("kind", "nested"), [("long", False), ({"type": "array", "elementType": "long"}, True)])
@pytest.mark.parametrize("ttl", [False, True])
def test_a_time_to_live_makes_no_value_nested(kind: Json, *, nested: bool, ttl: bool) -> None:
    schema: Json = {"type": "struct", "fields": [{"name": "count", "type": kind}]}
    if ttl:
        fields: list[Json] = [{"name": "value", "type": schema}, {"name": "ttlExpirationMs", "type": "long"}]
        schema = {"type": "struct", "fields": fields}
    store = SimpleNamespace(column_families=(ColumnFamily("kept", {}, schema),))
    assert is_nested(cast("Any", SimpleNamespace(stores=(store,)))) is nested


LONG: Json = {"type": "struct", "fields": [{"name": "n", "type": "long"}]}
DOUBLE: Json = {"type": "struct", "fields": [{"name": "n", "type": "double"}]}
WINDOW: Json = {"type": "struct", "fields": [{"name": "window", "type": LONG}]}
NONE: Json = {"type": "struct", "fields": []}


@pytest.mark.parametrize(
    ("bug", "operator", "keys", "value", "hit"),
    [
        ("SPARK-48481", "stateStoreSave", [LONG], NONE, True),
        ("SPARK-48481", "stateStoreSave", [LONG], LONG, False),
        ("SPARK-49836", "stateStoreSave", [WINDOW, WINDOW], LONG, True),
        ("SPARK-49836", "stateStoreSave", [WINDOW, LONG], LONG, False),
        ("SPARK-49836", "stateStoreSave", [WINDOW], LONG, False),
        ("SPARK-56280", "dedupe", [DOUBLE], NONE, True),
        ("SPARK-56280", "dedupe", [LONG], NONE, False),
        ("SPARK-56280", "stateStoreSave", [DOUBLE], LONG, False),
    ],
)
def test_columns_of_state_tell_bugs_apart(bug: str, operator: str, keys: list[Json], value: Json, *, hit: bool) -> None:
    operators = [
        Operator(number, operator, (Store("default", (), 1, False, (), None, None, (), key, value),))
        for number, key in enumerate(keys)
    ]
    checkpoint = SimpleNamespace(operators=operators, offsets=SimpleNamespace(newest=None))
    (entry,) = (each for each in known_bugs() if each.id == bug)
    assert replace(entry, several_sources=False).can_hit(cast("Any", checkpoint)) is hit


@pytest.mark.parametrize(
    "release", ["3.5", "3.5.4", "4.2.1", "3.5.8", "3.5.4-amzn-0", "4.0.4", "4.1.3", "4.2.0", "4.3.0", "4.4.1"]
)
def test_of_a_release_that_was_not_run_the_bugs_are_unknown(release: str) -> None:
    golden = [path.parent for path in GOLDENS.glob("*/offsets")]
    checkpoints = map(str, (*(SAMPLES / sample.name for sample in WRITTEN), *golden))
    codes = {found.diagnosis.code for each in checkpoints for found in find_bugs(open_checkpoint(each), [release])}
    assert codes - {"CKPT486"} == (set() if release in ("3.5", "3.5.4", "4.2.1") else {"CKPT487"})


@pytest.mark.parametrize("command", ["inspect", "preflight", "scan"])
def test_a_release_is_taken_where_a_version_is(command: str, ckpt: Ckpt) -> None:
    sample = SAMPLES / "join-hdfs-3.5"
    page = ckpt(command, sample, "--spark", "3.5.3")
    assert "CKPT486" in page.stdout
    for other in ("3.5", "3.5.4"):
        assert "CKPT486" not in ckpt(command, sample, "--spark", other).stdout
    document = ckpt("inspect", sample, "--spark", "3.5.3", "-o", "json").json()
    (told,) = (each for each in document["findings"] if each["code"] == "CKPT486")
    assert "SPARK-49829" in told["detail"]
    assert {each["spark"] for each in document["restart"]} == {"3.5"}
    assert "3.5.4" in str(document["next"])
    assert library.inspect(str(sample), spark=["3.5.3"]).findings[0].code == "CKPT486"


def test_each_bug_of_a_release_is_reported() -> None:
    findings = library.inspect(str(SAMPLES / "tws-changelog-4.0"), spark=["4.0.0"]).findings
    details = [rated.finding.detail for rated in findings if rated.code == "CKPT486"]
    assert [bug for bug in IDS if any(bug in detail for detail in details)] == [
        "SPARK-51690",
        "SPARK-52127",
        "SPARK-53870",
    ]


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "known-bugs.md").read_text() == bugs_page()


def test_each_release_that_was_not_run_is_named() -> None:
    findings = library.inspect(str(SAMPLES / "kafka-4.2"), spark=["4.2.0", "4.1.2"]).findings
    details = [rated.finding.detail for rated in findings if rated.code == "CKPT487"]
    assert [detail.split(" was ")[0] for detail in details] == ["Spark 4.2.0", "Spark 4.1.2"]
