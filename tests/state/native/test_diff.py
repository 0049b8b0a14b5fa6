"""``ckpt state diff``: what was added, removed and changed is what two full readings say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ckpt as library
from ckpt.errors import UsageError
from ckpt.state.native.diff import Change, state_diff
from ckpt.state.reading.units import StateUnit, UnitKind
from tests.commands import contract
from tests.conftest import Ckpt
from tests.state.export import rows
from tests.support.places import SAMPLES

KEYED = (UnitKind.KEY, UnitKind.DEDUPLICATION, UnitKind.STORE, UnitKind.VALUE, UnitKind.MAP)


def readings(sample: str, unit: StateUnit, batch: int) -> list[dict[str, Any]]:
    found = library.state_show(str(SAMPLES / sample), **rows.choice(unit), batch=batch, limit=10_000)
    return list(found.rows)


def parted(row: dict[str, Any]) -> tuple[str, str]:
    """A row's key and the rest of it, as text."""
    key = {name: value for name, value in row.items() if name.startswith(("key_", "user_map_key_"))}
    rest = {name: value for name, value in row.items() if name not in key}
    return json.dumps(key), json.dumps(rest)


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_every_two_batches(sample: str, unit: StateUnit) -> None:
    batches = [batch for first, last in unit.readable_batches for batch in range(first, last + 1)]
    for earlier, later in zip(batches, batches[2:], strict=False):
        one, two = readings(sample, unit, earlier), readings(sample, unit, later)
        (found,) = state_diff(
            str(SAMPLES / sample), from_batch=earlier, to_batch=later, **rows.choice(unit), limit=10_000
        ).units
        counts = (found.added, found.removed, found.changed)
        assert len(found.rows) == sum(counts)
        if unit.kind in KEYED:
            old, new = dict(map(parted, one)), dict(map(parted, two))
            changed = [key for key in old.keys() & new.keys() if old[key] != new[key]]
            assert counts == (len(new.keys() - old.keys()), len(old.keys() - new.keys()), len(changed))
            for row in found.rows:
                key = json.dumps(row.key)
                assert (old.get(key), new.get(key)) == tuple(
                    None if some is None else json.dumps(some) for some in (row.before, row.after)
                )
        else:
            old_rows, new_rows = sorted(map(json.dumps, one)), sorted(map(json.dumps, two))
            removed = [json.dumps(row.key) for row in found.rows if row.change is Change.REMOVED]
            added = [json.dumps(row.key) for row in found.rows if row.change is Change.ADDED]
            assert sorted([*new_rows, *removed]) == sorted([*old_rows, *added])
            assert not set(added) & set(removed)
            assert found.changed == 0


def test_a_state_is_equal_to_itself(ckpt: Ckpt) -> None:
    path = SAMPLES / "tws-rocksdb-4.2"
    result = ckpt("state", "diff", path, path, "-o", "json")
    assert result.exit_code == 0
    document = result.json()
    assert contract.disagreements(document, "state diff") == []
    units = rows.units_of(path)
    assert len(document["units"]) == len(units)
    assert all(one["added"] == one["removed"] == one["changed"] == 0 for one in document["units"])


def test_two_checkpoints(ckpt: Ckpt) -> None:
    """The same query, ten batches under one provider and six under another."""
    words = (SAMPLES / "aggregation-rocksdb-4.2", SAMPLES / "aggregation-hdfs-4.2")
    document = ckpt("state", "diff", *words, "-o", "json").json()
    assert (document["from_batch"], document["to_batch"]) == (5, 9)
    (found,) = document["units"]
    assert (found["added"], found["removed"], found["changed"]) == (0, 0, 7)
    assert ckpt("state", "diff", *words, "--to-batch", "5").exit_code == 0


def test_a_page_and_its_limit(ckpt: Ckpt) -> None:
    words = ("state", "diff", SAMPLES / "aggregation-changelog-4.2", "--from-batch", "8")
    result = ckpt(*words, "--limit", "1")
    assert result.exit_code == 1
    assert "batch 8 to 9: 0 added, 0 removed, 7 changed" in result.stdout
    assert "there are more: see --limit" in result.stdout
    assert ckpt(*words, "--limit", "0").stdout.count("key_key") == 0


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "aggregation-rocksdb-4.2", "join-hdfs-3.5"])
def test_without_batches_the_last_two_are_compared(sample: str) -> None:
    difference = state_diff(str(SAMPLES / sample))
    before, after = difference.before.batch, difference.after.batch
    assert before < after
    assert difference.units == state_diff(str(SAMPLES / sample), from_batch=before, to_batch=after).units


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="no state of a batch before 0 can be read"):
        state_diff(str(SAMPLES / "aggregation-hdfs-4.2"), to_batch=0)
    with pytest.raises(UsageError, match="operator 0 has other columns"):
        state_diff(str(SAMPLES / "aggregation-hdfs-4.2"), str(SAMPLES / "dedup-hdfs-4.0"))
    with pytest.raises(UsageError, match="only one of the two has operator 0, operator 0, left side"):
        state_diff(str(SAMPLES / "aggregation-hdfs-4.2"), str(SAMPLES / "join-hdfs-3.5"))
