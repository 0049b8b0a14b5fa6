"""A place in an Iceberg table: where the plan ends is where Spark went on, row by row (recorded)."""

from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.plan import offsets_set
from ckpt.errors import SourceError
from ckpt.live import ends
from ckpt.live.records import NotAsked
from tests.changes.offsets.running import apply_as_printed
from tests.live.iceberg.places import FIRST, PLACES, READ_LAST, SECOND, SUITE, WAITS, Place, find_time
from tests.live.iceberg.record import from_json
from tests.live.iceberg.remedies_followed import of
from tests.live.judging import checkpoint_of

((_, RECORDED),) = SUITE.answers.read_all().items()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_the_query_goes_on_there(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = RECORDED["answers"][place.name]
    now = from_json(answer["now"], place.case)
    monkeypatch.setattr(ends, "ask_iceberg", lambda request: now)
    checkpoint = checkpoint_of(tmp_path / "ck", answer["offsets"], committed=True)
    how: dict[str, Any] = {"to": find_time(place, now), "source_options": {0: {"path": "a table"}}}
    if place.refused:
        with pytest.raises(SourceError, match=place.refused):
            offsets_set(str(checkpoint), **how)
        return
    plan, _ = offsets_set(str(checkpoint), **how)
    assert plan.needed is not place.same
    if plan.needed:
        assert plan.moved[0].new.value == answer["ends"]
        applied = apply_as_printed(plan, checkpoint)
        assert (applied.moved[0].new.value, applied.skips, applied.repeats) == (
            answer["ends"],
            plan.skips,
            plan.repeats,
        )
        assert {place.between, place.says} <= {
            part for part in (place.between, place.says) if part in str(plan.warnings)
        }
    read, later = answer["read"], answer["then"]["ids"]
    assert bool(read["error"]) is place.fails
    assert read["ids"] == place.ids
    assert later == ([] if place.fails else sorted([*place.ids, *of(50)]))
    again = {row for rows in (FIRST, SECOND, READ_LAST) for row in rows} & {*read["ids"]}
    assert not again or plan.repeats
    assert (
        place.incident.startswith(("rolled", "created", "comp"))
        or {*WAITS} <= {*read["ids"]}
        or plan.skips
        or place.fails
    )
    if "own" in answer and "Rows added by snapshots" not in place.says:  # at which a new query of that time fails
        assert answer["own"]["ids"] == read["ids"]


def test_a_table_that_cannot_be_asked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "ask_iceberg", lambda request: NotAsked("with the option branch, ..."))
    offsets = RECORDED["answers"][PLACES[0].name]["offsets"]
    checkpoint = checkpoint_of(tmp_path / "ck", offsets, committed=True)
    with pytest.raises(SourceError, match="option branch"):
        offsets_set(str(checkpoint), to="latest", source_options={0: {"path": "a table", "branch": "b"}})
