"""What ``ckpt inspect`` says of every sample: what it must by understanding, and byte for byte what it said before."""

import pytest

from ckpt.versions import Spark
from tests.inspection import golden
from tests.inspection.golden.codes import MUST_SHOW, SHRUGGED_OFF
from tests.support.places import ANSWERS, HERE, SAMPLE_NAMES
from tests.support.spark import damage, queries, samples

WRITERS = {sample.name: sample for sample in samples.SAMPLES}
WRITERS |= {damaged.name: WRITERS[damaged.base] for damaged in damage.DAMAGED}


@pytest.fixture(autouse=True)
def moved(request: pytest.FixtureRequest) -> None:
    """Where the place at which a sample was written is still there, its schema files are not lost, and it says so."""
    sample = request.node.callspec.params.get("sample") if hasattr(request.node, "callspec") else None
    if sample and (samples.ORIGIN / WRITERS[sample].name / "state" / "0" / "_stateSchema").exists():
        pytest.skip(f"{samples.ORIGIN} is still there, so this sample is not a moved one here")


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_the_answer_is_the_golden_one(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    assert golden.answer(sample) == golden.recorded(sample), "right? then: python -m tests.inspection.golden " + sample


def test_every_sample_has_a_golden_answer_and_every_answer_a_sample() -> None:
    assert sorted(path.stem for path in ANSWERS.iterdir()) == SAMPLE_NAMES


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_warnings_and_errors_are_those_that_the_damage_must_show(sample: str) -> None:
    document, must = golden.recorded(sample), MUST_SHOW.get(sample, set())
    assert {finding["code"] for finding in document["findings"] if finding["severity"] != "note"} == must
    assert document["exit_code"] == (1 if must else 0)


def test_every_damage_is_judged_by_hand() -> None:
    damaged = {sample for sample in SAMPLE_NAMES if sample.startswith("damaged-")}
    assert not MUST_SHOW.keys() & SHRUGGED_OFF.keys()
    assert damaged <= MUST_SHOW.keys() | SHRUGGED_OFF.keys() <= set(SAMPLE_NAMES)


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_what_is_said_of_the_query_is_what_ran(sample: str) -> None:
    """Which Spark wrote it, whether it keeps state, and where: told truly, or left open where the files do not tell."""
    told, writer = golden.recorded(sample), WRITERS[sample]

    at_least = told["checkpoint"]["written_by"]["at_least"]
    assert at_least is None or not Spark(at_least).at_least(Spark(writer.spark)) or at_least == writer.spark
    keeps = queries.QUERIES[writer.query].stateful
    assert told["checkpoint"]["stateful"] in (keeps, None) or sample == "damaged-missing-state"
    if told["state"] is not None:
        assert told["state"]["provider"] == ("hdfs" if writer.store == "hdfs" else "rocksdb")
        assert told["state"]["format_version"] == (2 if writer.store == "format2" else 1)
    known = {"delta": "delta", "continuous-rate": "unknown"}
    known |= dict.fromkeys(("kafka", "kafka-orders", "kafka-counts"), "kafka")
    known |= dict.fromkeys(("file-source", "named-file-sources"), "file")
    kinds = {source["type"] for source in told["sources"]}
    assert kinds <= {known.get(writer.query, "rate-micro-batch")}
    if writer.query == "kafka":
        assert told["sources"] == [] or told["sources"][0]["decoded"]
