"""The folders of partitions are found once for a listing, however many partitions ask for theirs."""

import gc
from pathlib import Path

import pytest

import ckpt
from ckpt.checkpoint.state import folders
from ckpt.model import Provider
from ckpt.storage import Listing, open_storage
from tests.support.places import SAMPLES

SAMPLE = str(SAMPLES / "aggregation-hdfs-4.2")


def test_work_on_partitions_does_not_list_all_of_them_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    listed: list[int] = []
    plain = folders._list_operators

    def noted(listing: Listing, provider: Provider) -> tuple[folders.OperatorFolder, ...]:
        listed.append(1)
        return plain(listing, provider)

    monkeypatch.setattr(folders, "_list_operators", noted)
    for partitions in (2, 20):
        new = str(tmp_path / str(partitions))
        ckpt.rewrite(SAMPLE, new, partitions=partitions)
        listed.clear()
        ckpt.state_count(new)
        ckpt.state_keys(new)
        ckpt.state_diff(SAMPLE, new)
        counts.append(len(listed))
    assert 0 < counts[0] == counts[1]


def test_what_was_found_goes_with_its_listing() -> None:
    gc.collect()
    before = len(folders._of_listings)
    listing = open_storage(SAMPLE).list_tree()
    first = folders.find_operators(listing, Provider.HDFS)
    assert folders.find_operators(listing, Provider.HDFS) is first
    assert folders.find_operators(listing, Provider.ROCKSDB) is not first
    assert len(folders._of_listings) == before + 2
    del listing
    gc.collect()
    assert len(folders._of_listings) == before
