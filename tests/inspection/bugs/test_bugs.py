"""Known bugs: the table is what was run, and a finding is where a checkpoint has what a bug needs, and nowhere else."""

from __future__ import annotations

import pytest

import ckpt as library
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.bugs import find_bugs, known_bugs
from docs.generate.bugs import bugs_page
from docs.generate.places import DOCS
from tests.conftest import Ckpt
from tests.inspection.bugs.cases import CASES, NOT_IN_TABLE, RIGHT
from tests.inspection.bugs.record import list_releases, read_answers
from tests.support.places import GOLDENS, SAMPLES
from tests.support.spark.samples import SAMPLES as WRITTEN

ANSWERS = read_answers()
IDS = [bug.id for bug in known_bugs()]


@pytest.mark.parametrize("bug", known_bugs(), ids=IDS)
def test_each_was_run_with_it_and_without(bug: object) -> None:
    assert isinstance(bug, type(known_bugs()[0]))
    for first, last, fixed in bug.ranges:
        for release in (first, last):
            assert ANSWERS[bug.id][release] != RIGHT[bug.id], release
            assert bug.fixed_for(release) == fixed
        assert ANSWERS[bug.id][fixed] == RIGHT[bug.id]
        assert bug.fixed_for(fixed) is None
    assert {*list_releases()} <= ANSWERS[bug.id].keys()


def test_what_did_not_show_is_not_in_the_table() -> None:
    assert {*CASES} == {*IDS} | NOT_IN_TABLE
    assert NOT_IN_TABLE.isdisjoint(IDS)


NEEDS = {
    "join": {"SPARK-49829"},
    "dedup-within-watermark": {"SPARK-50492"},
}
"""What can be hit by the queries of the samples; the others have nothing that a bug needs."""


def test_found_where_a_checkpoint_has_what_it_needs_and_nowhere_else() -> None:
    releases = ["3.5.0", "3.5.1", "3.5.3"]
    for sample in WRITTEN:
        found = {
            bug
            for finding in find_bugs(open_checkpoint(str(SAMPLES / sample.name)), releases)
            for bug in IDS
            if bug in finding.detail
        }
        assert found == NEEDS.get(sample.query, set()), sample.name


@pytest.mark.parametrize("release", ["3.5", "3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0", "4.4.1"])
def test_nothing_on_a_release_without_them(release: str) -> None:
    golden = [path.parent for path in GOLDENS.glob("*/offsets")]
    places = map(str, (*(SAMPLES / sample.name for sample in WRITTEN), *golden))
    assert [place for place in places if [*find_bugs(open_checkpoint(place), [release])]] == []


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


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "known-bugs.md").read_text() == bugs_page()
