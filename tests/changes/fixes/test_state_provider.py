"""A recorded provider that is none of Spark's, over files that Spark's own wrote: explained, held, and named again."""

from pathlib import Path

import pytest

import ckpt as library
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.settings import PROVIDER_CLASS
from ckpt.versions import Spark
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import answers
from tests.restart.oracle.cases import younger
from tests.restart.oracle.cases.model import latest
from tests.support.places import SAMPLES

FOREIGN = "com.acme.MyProvider"
SAMPLE = "aggregation-rocksdb-3.5"
HEAD = f"{SAMPLE}-recorded-stateStore.providerClass=acme-in-all/sync"
FIXED = f"{SAMPLE}-older-offsets-record-acme/sync"


def _copy_with_foreign_provider(copy_of: CopyOf, sample: str = SAMPLE) -> Path:
    newest = latest(sample)
    return copy_of(sample, *younger.name_provider(sample, FOREIGN, newest + 1))


@pytest.mark.parametrize("sample", younger.BASES)
def test_the_newest_offsets_get_the_bytes_with_which_spark_resumed(copy_of: CopyOf, sample: str) -> None:
    """The recorded case ``older-offsets-record-acme`` is what the fix leaves."""
    checkpoint = _copy_with_foreign_provider(copy_of, sample)
    assert library.repair(str(checkpoint))[0].chosen is None
    _, receipt = library.repair(str(checkpoint), choose="name-provider", apply=True, grace=0)
    assert receipt.applied
    newest = latest(sample)
    for batch in (newest, newest - 1):
        fixed = (checkpoint / "offsets" / str(batch)).read_text()
        assert fixed == (SAMPLES / sample / "offsets" / str(batch)).read_text()
    assert FOREIGN in (checkpoint / "offsets" / str(newest - 2)).read_text()


def test_what_the_fix_leaves_is_what_spark_resumed_from() -> None:
    for minor in answers.VERSIONS:
        recorded = answers.read(minor)["answers"]
        assert recorded[HEAD]["outcome"] == "fails-at-start"
        assert any(FOREIGN in line for line in recorded[HEAD]["error"])
        assert recorded[FIXED]["outcome"] == "resumes"


def test_nothing_is_named_where_spark_knows_the_provider() -> None:
    plan, _ = library.repair(str(SAMPLES / SAMPLE), choose="name-provider")
    assert "Spark's own provider" in str(plan.refused)


@pytest.mark.parametrize("text", [FOREIGN, f"[STREAM_FAILED] Query [id = 1] terminated with exception: {FOREIGN}"])
def test_a_class_name_that_is_the_whole_message_is_explained(text: str, copy_of: CopyOf) -> None:
    assert [match.error.id for match in library.explain(text).matches] == ["class-not-found"]
    assert library.explain("com.acme.Other").matches == ()
    explanation = library.explain(text, checkpoint=str(_copy_with_foreign_provider(copy_of)))
    assert [rated.finding.diagnosis.code for rated in explanation.matches[0].shown] == ["CKPT117"]


def test_a_session_with_such_a_provider_is_warned_of_where_none_is_recorded(ckpt: Ckpt, tmp_path: Path) -> None:
    codes = {}
    for folder in (tmp_path / "new", SAMPLES / SAMPLE):
        checkpoint = library.open_checkpoint(str(folder)) if folder.exists() else _open_new(folder)
        readiness = judge_start(checkpoint, PlannedStart(Spark.V4_2, {PROVIDER_CLASS: FOREIGN}))
        assert readiness.go
        codes[folder.name] = [rated.finding.diagnosis.code for rated in readiness.warnings]
    assert codes == {"new": ["CKPT254"], SAMPLE: []}


def _open_new(folder: Path) -> library.Checkpoint:
    folder.mkdir()
    return library.open_checkpoint(str(folder))


def test_state_is_exported_by_its_layout(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = _copy_with_foreign_provider(copy_of)
    own = library.read_state_arrow(str(SAMPLES / SAMPLE)).to_pylist()
    assert library.read_state_arrow(str(checkpoint)).to_pylist() == own
    run = ckpt("export-state", checkpoint, "--to", tmp_path / "state", "--engine", "native")
    assert run.exit_code == 0
    assert FOREIGN in ckpt("export-state", checkpoint, "--to", tmp_path / "other", "--plan").stdout
