"""A tree as a plan would leave it, without writing: what was known of its folders is still known."""

import os
from pathlib import Path

from ckpt.storage.base import Listing
from ckpt.storage.changed import ChangedStorage
from ckpt.storage.uri import open_storage


def test_what_is_known_of_folders_is_kept_and_a_changed_one_is_younger(tmp_path: Path) -> None:
    for folder in ("offsets", "commits", "state"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_text("v1")
        os.utime(tmp_path / folder, (1, 1))
    storage = open_storage(str(tmp_path))
    known = storage.list_tree(tolerant=True)
    listing = Listing(known.folders, known.oddities, known.links, {"state": "may not be read"}, known.changed_ms)
    after = ChangedStorage(storage, listing, {"offsets/0": None, "commits/1": b"v1"}).list_tree(tolerant=True)
    assert after.refused == {"state": "may not be read"}
    younger = {folder for folder, changed in after.changed_ms.items() if changed > known.changed_ms[folder]}
    assert younger == {"offsets", "commits"}
    assert storage.list_tree(tolerant=True) == known
