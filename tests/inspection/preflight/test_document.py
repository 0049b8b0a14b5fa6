"""``ckpt preflight`` on what ``ckpt inspect -o json`` printed says what it says on the checkpoint itself."""

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ckpt import Spark, __version__, inspect, open_checkpoint
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import LeadsOut
from ckpt.errors import CkptError
from ckpt.inspection.preflight import PlannedStart, Readiness, judge_start
from ckpt.query.description import DescribedSource, QueryDescription, parse_query
from ckpt.restart.findings import Asked
from ckpt.state.verify.verify import read_every_byte
from commands.inspected import mask_query, read_evidence
from commands.render.blocks import Title
from commands.render.document import write_object
from commands.render.keys import as_json
from commands.render.layout import PageLayout
from commands.render.page import InspectionReport
from commands.render.preflight import PreflightReport, RecordedPreflightReport
from tests.conftest import Ckpt, CopyOf
from tests.inspection.preflight import changes
from tests.inspection.preflight.test_recorded import answers
from tests.laws.next_obeyed import oracle_cases
from tests.live.delta.cases import remove
from tests.restart.oracle.cases import Case
from tests.support.places import EACH_SAMPLE
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

SAMPLE = "sample_checkpoints/aggregation-hdfs-4.2"
PRINTED = Path(__file__).parent / "printed"
"""What ``ckpt inspect SAMPLE -o json`` of each version printed."""
STARTS = (
    PlannedStart(),
    PlannedStart(progress=Asked.ASYNC),
    PlannedStart(progress=Asked.BOTH, must_exist=True),
    PlannedStart(Spark.V3_5, {"spark.sql.shuffle.partitions": "7"}),
    PlannedStart(Spark.V4_3, {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}),
)
ORACLE = oracle_cases()


def say(readiness: Readiness, report: PreflightReport) -> Mapping[str, Any]:
    """The document of a report, but for what is not known, and the steps with which the page ends.

    Without the details of findings: two versions of Spark may call one thing by other words.
    """
    document: dict[str, Any] = json.loads(write_object(report.document()))
    for finding in (*document["holds"], *document["warnings"]):
        del finding["detail"]
    verdict = document["verdict"].partition(": ")[0]
    return {**document, "verdict": verdict, "unknown": None, "steps": readiness.inspection.advice}


def print_document(checkpoint: Checkpoint, folder: Path) -> str:
    """Print the document of ``ckpt inspect`` into a file."""
    path = folder / "inspected.json"
    path.write_text(write_object(InspectionReport(inspect(checkpoint)).document()))
    return str(path)


def compare(checkpoint: Checkpoint, starts: tuple[PlannedStart, ...], folder: Path) -> None:
    evidence, shown = read_evidence(print_document(checkpoint, folder))
    for start in starts:
        there, here = judge_start(checkpoint, start), judge_start(evidence, start)
        expected, said = say(there, PreflightReport(there)), say(here, RecordedPreflightReport(here, checkpoint=shown))
        assert said == expected, start
        assert {*here.unknown} >= {text for text in there.unknown if not str(text).startswith("the newest file is")}
        pages = (PreflightReport(readiness).page()[1] for readiness in (there, here))
        title, other = (block for page in pages for block in page if isinstance(block, Title))
        facts = ((one, fact) for one, fact in zip(title.facts, other.facts, strict=True) if one != fact)
        assert all(" in batch " in one and "sources unknown" in fact for one, fact in facts), "it has the newest alone"


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_a_sample(sample: str, copy_of: CopyOf, tmp_path: Path) -> None:
    compare(open_checkpoint(str(copy_of(sample))), STARTS, tmp_path)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ORACLE[:: 1 if EVERY_CASE else 48]])
def test_a_damage(case: Case, tmp_path: Path) -> None:
    mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    with suppress(LeadsOut):  # ``inspect`` refuses it, and prints no document
        compare(open_checkpoint(str(tmp_path / "checkpoint")), STARTS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("minor", "base"), [(minor, base.name) for minor in ("3.5", "4.2") for base in changes.bases(minor)]
)
def test_a_changed_query(minor: str, base: str, made: Any, tmp_path: Path) -> None:
    recorded = {name: told for name, told in answers(minor).items() if name.startswith(f"{base}: ")}
    by_maker: dict[str, list[PlannedStart]] = {}
    for name, told in recorded.items():
        start = PlannedStart(Spark(minor), all_settings=True, query=parse_query(told["query"]))
        by_maker.setdefault(name.partition(", made by ")[2] or minor, []).append(start)
    for maker, starts in by_maker.items():
        compare(made(maker, base), tuple(starts), tmp_path)


@pytest.mark.parametrize("document", sorted(PRINTED.glob("*.json")), ids=lambda path: path.stem)
def test_what_each_version_printed_is_read(document: Path) -> None:
    """A key that a later version adds needs a default for them. These read no state by default."""
    here, there = read_evidence(str(document))[0], open_checkpoint(SAMPLE, names_only=True)
    for start in STARTS:
        assert judge_start(here, start).verdict == judge_start(there, start).verdict


def test_this_version_is_kept() -> None:
    assert (PRINTED / f"{__version__}.json").is_file()


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("batches", [1, 2, 12])
def test_the_folder_of_files(batches: int, committed: bool, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("file-source-4.2")
    for file in (*checkpoint.glob("offsets/[0-9]*"), *checkpoint.glob("commits/[0-9]*")):
        if int(file.name) >= batches - (file.parent.name == "commits" and not committed):
            remove(file)
    sources = (DescribedSource("file", path=path) for path in ("/elsewhere", "/tmp/ckpt-samples", "/elsewhere/*"))
    queries = [QueryDescription(Spark.V4_2, "append", (source,), (), None, None, {}) for source in sources]
    opened = open_checkpoint(str(checkpoint))
    compare(opened, tuple(PlannedStart(query=query) for query in queries), tmp_path)
    holds = judge_start(opened, PlannedStart(query=queries[0])).holds
    assert [hold.finding.diagnosis.code for hold in holds] == ["CKPT465"]


def test_every_byte_that_was_read_there(tmp_path: Path) -> None:
    checkpoint = read_every_byte(SAMPLE)
    compare(checkpoint, STARTS, tmp_path)
    readiness = judge_start(read_evidence(print_document(checkpoint, tmp_path))[0], PlannedStart())
    assert not any("state verify" in str(text) for text in readiness.unknown)


def test_what_is_refused(ckpt: Ckpt, tmp_path: Path) -> None:
    """With 3 where the document does not say what was asked, with 2 where only a checkpoint can be asked."""
    words = ["inspect", SAMPLE, "-o", "json"]
    inspected, narrow, other = (tmp_path / name for name in ("inspected", "narrow.json", "other.json"))
    inspected.write_text(ckpt(*words).stdout)
    narrow.write_text(ckpt(*words, "--spark", "4.2").stdout)
    other.write_text("[1]")

    assert ckpt("preflight", narrow).refusal().startswith(f"ckpt: {narrow} does not say how Spark 3.5 starts (sync)")
    assert ckpt("preflight", narrow, "--spark", "4.2").exit_code == 0
    assert "is not a document that" in ckpt("preflight", other).refusal()
    old = json.loads(inspected.read_text())
    del old["restart"][0]["reasons"]  # as a ckpt that did not know the key would have printed it
    asked = ckpt(*words, "--sink", tmp_path / "sink").stdout
    for text, name in ((json.dumps(old), "has no key 'reasons'"), (asked, "has answers from the sink")):
        other.write_text(text)
        run = ckpt("preflight", other)
        assert (run.exit_code, name in run.refusal()) == (3, True)
    for option in (["--deep"], ["--sources"], ["--sink", "x"], ["--storage-options", "a=b"]):
        assert ckpt("preflight", inspected, *option).exit_code == 2


def test_a_document_of_a_ckpt_whose_steps_had_fewer_keys_is_read(ckpt: Ckpt, tmp_path: Path) -> None:
    document = ckpt("inspect", "sample_checkpoints/damaged-missing-sst", "-o", "json").json()
    for step in document["next"]:
        del step["do"]
    for found in document["findings"]:
        del found["advice"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(document))
    run = ckpt("preflight", old, "-o", "json")
    assert run.exit_code == 1
    assert "an earlier version wrote this document" in run.json()["next"][0]["what"]


def test_a_folder_with_a_secret_is_compared_as_it_was_masked() -> None:
    source = DescribedSource("file", path="s3a://KEY:SECRET@bucket/in")
    query = QueryDescription(Spark.V4_2, "append", (source,), (), None, None, {})
    assert mask_query(query).sources[0].path == "s3a://***@bucket/in"


QUERY = QueryDescription.read("docs/query.json")
MUTANTS = 2_000 if EVERY_CASE else 40
ODD: tuple[Any, ...] = (None, True, -1, 10**30, 1e308, "", "x\x1b[2J", [], {}, [[]], {"a": 1})


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a document with the key or index of each of its values."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from list_places(inner)


@pytest.mark.parametrize("sample", ["join-v4-changelog-4.3", "file-source-4.2", "async-kafka-4.2"])
def test_a_document_that_lies_is_refused_or_shown(sample: str, tmp_path: Path) -> None:
    text = json.dumps(as_json(InspectionReport(inspect(f"sample_checkpoints/{sample}")).document()), default=as_json)
    chance, path = random.Random(28), tmp_path / "inspected.json"
    for _ in range(MUTANTS):
        document = json.loads(text)
        container, key = chance.choice([*list_places(document)])
        container[key] = chance.choice(ODD)
        path.write_text(json.dumps(document))
        with suppress(CkptError):
            evidence, shown = read_evidence(str(path))
            readiness = judge_start(evidence, PlannedStart(settings={"spark.sql.shuffle.partitions": "7"}, query=QUERY))
            report = RecordedPreflightReport(readiness, checkpoint=shown)
            assert write_object(report.document())
            assert PageLayout().text(report.page()).replace("\n", "").isprintable()
