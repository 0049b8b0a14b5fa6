import json
import re
import zlib
from pathlib import Path

import pytest

from tests.support.places import ROOT, SAMPLES as ALL

from . import mutations, page
from .damage import BUNDLED, DAMAGED, Damaged
from .plans import ROWS
from .queries import QUERIES
from .samples import FOLDER, ORIGIN, SAMPLES, Sample

NAMED = {sample.name: sample for sample in SAMPLES} | {damaged.name: damaged for damaged in DAMAGED}
ANSWERS = json.loads((FOLDER / "answers.json").read_text())


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damaged", DAMAGED, ids=lambda damaged: damaged.name)
def test_a_damaged_sample_is_its_base_after_its_mutations(damaged: Damaged, tmp_path):
    remade = mutations.copy_of(FOLDER / damaged.base, tmp_path / "again", damaged.mutations)
    assert files(remade) == files(ALL / damaged.name)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_byte_is_as_spark_wrote_it(sample: Sample):
    """Hadoop's hidden checksums, a big-endian CRC32 for each 512 bytes, still hold."""
    checked = 0
    for crc in (FOLDER / sample.name).rglob(".*.crc"):
        content = crc.with_name(crc.name[1:-4]).read_bytes()
        chunks = [content[start : start + 512] for start in range(0, len(content), 512)]
        sums = b"".join(zlib.crc32(chunk).to_bytes(4, "big") for chunk in chunks)
        assert crc.read_bytes() == b"crc\0\0\0\2\0" + sums, crc
        checked += 1
    assert checked


def test_the_folder_the_data_and_the_readme_agree():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == {sample.name for sample in SAMPLES} | {*BUNDLED}
    assert {path.name for path in ALL.iterdir()} == set(NAMED)
    assert (FOLDER / "README.md").read_text() == page.readme()


@pytest.mark.parametrize("name", BUNDLED)
def test_a_damaged_sample_of_the_repository_is_one_that_the_documentation_shows(name: str):
    assert files(FOLDER / name) == files(ALL / name)
    assert any(f"{FOLDER.name}/{name}" in page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def test_the_folder_stays_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 8_000_000


def test_samples_name_no_place_but_their_origin():
    places = {
        place.decode()
        for path in FOLDER.rglob("*/**/*")
        if path.is_file()
        for place in re.findall(rb"file:/+[\w.-]+/[\w.-]+", path.read_bytes())
    }
    assert places
    assert all(re.fullmatch(f"file:/+{str(ORIGIN)[1:]}", place) for place in places)


def test_every_stateful_sample_has_an_answer():
    assert set(ANSWERS) == {sample.name for sample in SAMPLES if QUERIES[sample.query].stateful}
    assert all(one["operators"] for one in ANSWERS.values())


@pytest.mark.parametrize("name", [name for name in ANSWERS if name.startswith("aggregation-")])
def test_the_answer_counts_every_row_of_every_committed_batch(name: str):
    batches = len(list((FOLDER / name / "commits").glob("[0-9]*")))
    rows = ANSWERS[name]["operators"]["0"]["views"][0]["rows"]
    assert sum(row["value"]["count"] for row in rows) == batches * ROWS
    assert sum(row["value"]["sum"] for row in rows) == sum(range(batches * ROWS))


def test_a_mutation_that_would_do_nothing_is_refused(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "1").write_text("v1")
    for mutation in (
        {"op": "delete", "path": "offsets/2"},
        {"op": "delete", "path": "commits/*"},
        {"op": "replace_text", "path": "offsets/1", "old": "v2", "new": "v3"},
        {"op": "vanish", "path": "offsets/1"},
    ):
        with pytest.raises(ValueError, match="'op'"):
            mutations.apply(tmp_path, [mutation])
    assert files(tmp_path) == {"offsets/1": b"v1"}


def test_the_checksum_goes_with_its_file_unless_kept(tmp_path):
    for batch in "12":
        (tmp_path / batch).write_text("v1")
        (tmp_path / f".{batch}.crc").write_text("sum")
    mutations.apply(
        tmp_path,
        [{"op": "delete", "path": "1"}, {"op": "truncate", "path": "2", "bytes": 1, "keep_crc": True}],
    )
    assert files(tmp_path) == {"2": b"v", ".2.crc": b"sum"}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_logs_end_as_the_run_did(sample: Sample):
    offsets, commits = (
        {int(path.name) for path in (FOLDER / sample.name / log).glob("[0-9]*")} for log in ("offsets", "commits")
    )
    if sample.run == "killed":
        assert offsets - commits == {sample.count}
    elif sample.run == "async":
        assert offsets == commits
        assert max(offsets) - 1 not in offsets, "a synchronous start would find its predecessor"
    else:
        assert offsets == commits == set(range(max(offsets) + 1))
