"""A gap of asynchronous progress tracking before a topic that was recreated: no repair begins at the old end."""

import json
from typing import Any

from tests.conftest import Ckpt, CopyOf
from tests.laws.agreement import find_disagreements


def test_no_repair_begins_at_the_old_end(copy_of: CopyOf, ckpt: Ckpt) -> None:
    """``repair-async`` rewound to the ends of the old topic, and rows of the new one were never read."""
    checkpoint = copy_of("async-kafka-4.2")
    newest = checkpoint / "offsets" / "31"
    *head, _ = newest.read_text().splitlines()
    newest.write_text("\n".join((*head, json.dumps({"orders": {"0": 6, "1": 10}}))))
    for file in ("offsets/.31.crc", "commits/31", "commits/.31.crc"):
        (checkpoint / file).unlink(missing_ok=True)

    documents: list[dict[str, Any]] = [
        ckpt(name, checkpoint, "-o", "json").json() for name in ("repair", "repair-async")
    ]

    for document in documents:
        assert "the offsets of orders went back" in document["refused"]
    assert not any(step["command"] for step in ckpt("inspect", checkpoint, "-o", "json").json()["next"])
    assert [*find_disagreements(checkpoint)] == []
