"""``ckpt offsets export`` and ``import`` without a broker: the document, the mapping of topics, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.changes.applying import after_next, facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import EACH_SAMPLE
from tests.support.remedies import remove


def written(ckpt: Ckpt, checkpoint: object, to: Path, **offset: Any) -> Path:
    """The document of a checkpoint as a file; with another offset of its first source."""
    document = ckpt("offsets", "export", checkpoint).json()
    if offset:
        document["sources"][0]["offset"] = offset
    to.write_text(json.dumps(document))
    return to


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_every_sample_is_exported_as_published_and_imported_unchanged(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    before = facts(checkpoint)
    run = ckpt("offsets", "export", checkpoint)
    if run.exit_code == 3:
        assert "nothing to export" in run.refusal()
        return
    assert contract.disagreements(run.json(), "offsets export") == []
    assert ckpt("offsets", "export", checkpoint, "-o", "table").exit_code == 0
    file = checkpoint.with_name("offsets.json")
    file.write_text(run.stdout)
    plan = ckpt("offsets", "import", checkpoint, file, "-o", "json").json()
    assert contract.disagreements(plan, "offsets import") == []
    assert plan["refused"] or bool(plan["steps"]) == plan["needed"] == (run.json()["batch"] != plan["batch"])
    assert facts(checkpoint) == before


def test_a_topic_with_another_name_and_other_offsets(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    before = facts(checkpoint)
    file = written(ckpt, checkpoint, tmp_path / "my offsets.json", orders={"0": 7, "1": 8, "2": 0})
    planned = ckpt("offsets", "import", checkpoint, file, "--topic", "orders=orders.eu")
    words = after_next(planned.stdout)
    assert words[:4] == ["offsets", "import", str(checkpoint), str(file)]
    assert "A copy" not in planned.stdout
    assert "a copy of a topic usually has other offsets" in " ".join(planned.stdout.split())

    done = ckpt(*words, "--grace", 0, "-o", "json").json()
    assert done["applied"], done["refused"]
    assert done["sources"][0]["to"] == {"orders.eu": {"0": 7, "1": 8, "2": 0}}
    assert json.loads((checkpoint / "offsets" / "5").read_text().splitlines()[2]) == done["sources"][0]["to"]
    undone = ckpt("offsets", "import", checkpoint, "--undo", done["backup"], "--grace", 0)
    assert undone.exit_code == 0, undone.stdout
    assert facts(checkpoint) == before


@pytest.mark.parametrize(
    ("offset", "words", "code", "said"),
    [
        ({"orders": {"0": 7}}, ["--topic", "orders=new"], 3, "new/1 is left out"),
        (
            {"orders": {"0": 7, "1": 9}},
            ["--topic", "order=new"],
            2,
            "the document does not have this topic; it has orders",
        ),
        ({"orders": {"0": 7, "1": 9}}, ["--topic", "orders"], 2, "write it as key=value"),
        ({"orders": {"0": 7}}, ["--topic", "orders=a", "--topic", "orders=b"], 2, "--topic: orders is given twice"),
        ({"a": {"0": 1}, "b": {"0": 2}}, ["--topic", "a=b"], 2, "gives two topics of source 0 the same name"),
        ({"orders": {"0": -1, "1": 9}}, [], 2, "source 0 of the document gives orders/0 the offset -1"),
    ],
)
def test_what_is_refused(offset: Any, words: list[str], code: int, said: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = written(ckpt, "sample_checkpoints/kafka-4.2", tmp_path / "x.json", **offset)
    run = ckpt("offsets", "import", "sample_checkpoints/kafka-4.2", file, *words)
    assert run.exit_code == code
    assert said in " ".join((run.stdout + run.stderr).split())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "else"}, "does not come from `ckpt offsets export`"),
        ({"version": 2}, "has version 2, but this ckpt reads version 1"),
        ({"version": True}, "has version True, but this ckpt reads version 1"),
        ({"sources": []}, "has no sources"),
        ({"sources": [{"offset": 1}]}, "must have its own index"),
        ({"sources": 7}, "has no sources"),
    ],
)
def test_documents_are_read_strictly(change: Any, said: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = written(ckpt, "sample_checkpoints/kafka-4.2", tmp_path / "x.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    run = ckpt("offsets", "import", "sample_checkpoints/kafka-4.2", file)
    assert run.exit_code == 2
    assert said in run.refusal()
    file.write_text("[]")
    assert ckpt("offsets", "import", "sample_checkpoints/kafka-4.2", file).exit_code == 2
    assert "name the file" in ckpt("offsets", "import", "sample_checkpoints/kafka-4.2").refusal()


def test_a_document_of_another_query(ckpt: Ckpt, tmp_path: Path) -> None:
    file = written(ckpt, "sample_checkpoints/delta-4.2", tmp_path / "x.json")
    run = ckpt("offsets", "import", "sample_checkpoints/kafka-4.2", file, "-o", "json")
    assert (run.exit_code, run.json()["refused"]) == (3, "source 0 is kafka, but delta in the document")
    file = written(ckpt, "sample_checkpoints/two-sources-3.5", tmp_path / "y.json")
    run = ckpt("offsets", "import", "sample_checkpoints/stateless-3.5", file, "-o", "json")
    assert run.json()["refused"] == "the document has 2 sources, but the query has 1"


def test_what_is_exported_is_committed(ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("offsets", "export", copy_of("stateless-killed-3.5"))
    assert run.json()["batch"] == 3
    assert "planned but not committed" in run.stderr


def test_a_batch_that_was_planned_on_the_old_topic_cannot_run_on_the_new_one(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    file = written(ckpt, "sample_checkpoints/kafka-4.2", tmp_path / "x.json")
    checkpoint = copy_of("kafka-4.2")
    remove(checkpoint / "commits" / "5")
    run = ckpt("offsets", "import", checkpoint, file, "--topic", "orders=new", "-o", "json")
    assert "its partitions would change: let it run first" in run.json()["refused"]


def test_two_sources_are_moved_together(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("two-sources-3.5")
    document = ckpt("offsets", "export", checkpoint).json()
    for number, source in enumerate(document["sources"]):
        source["offset"]["offset"] = 1000 + number
    file = tmp_path / "x.json"
    file.write_text(json.dumps(document))
    plan = ckpt("offsets", "import", checkpoint, file, "-o", "json").json()
    assert [one["to"]["offset"] for one in plan["sources"]] == [1000, 1001]
    assert [one["amount"] for one in plan["skipped"][0]["sources"]] == [960, 921]
