"""A scan that was interrupted continues from its file, and says the same as one that was not."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import ckpt
from ckpt.errors import CkptError, StorageError, UsageError
from ckpt.inspection.scan import unfinished
from ckpt.storage.remote import REQUESTS_AT_ONCE
from tests.conftest import Ckpt, CopyOf, command
from tests.inspection.scan.trees import build
from tests.support.places import HERE, SAMPLES
from tests.support.services.counting import CountingS3, counting_s3


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("resumed") / "root", 30, hostile=True))


def interrupt_after(count: int) -> Callable[[int, int], None]:
    """A watcher that presses Ctrl-C when so many checkpoints are done."""

    def watch(done: int, _: int) -> None:
        if done == count:
            raise KeyboardInterrupt

    return watch


def lines_in(file: Path) -> list[list[object]]:
    return [json.loads(line) for line in file.read_text().splitlines()[1:]]


def interrupt(roots: str, file: Path, after: int = 12) -> None:
    with pytest.raises(KeyboardInterrupt):
        ckpt.scan(roots, jobs=1, resume=file, watcher=interrupt_after(after))


def test_it_continues_and_says_what_an_uninterrupted_scan_does(tree: str, tmp_path: Path) -> None:
    plain, file = ckpt.scan(tree), tmp_path / "rows"
    interrupt(tree, file, 5)
    interrupt(tree, file, 12)
    kept = lines_in(file)
    looked: list[int] = []

    found = ckpt.scan(tree, resume=file, watcher=lambda done, _: looked.append(done))

    assert found.checkpoints == plain.checkpoints
    assert 5 < found.resumed == len(kept) < 12
    assert looked == list(range(len(kept) + 1, len(plain.checkpoints) + 1))
    assert found.began_ms < found.ended_ms
    assert not file.exists()


def test_every_row_comes_back_as_it_was(copy_of: CopyOf, tmp_path: Path) -> None:
    names = ("async-kafka-4.2", "aggregation-changelog-4.2", "damaged-missing-sst", "continuous-4.2")
    copy_of("stateless-4.2", to="pipeline/_checkpoints/catalog/schema/table/flow/0")
    copy_of("stateless-4.2", to="pipeline/_checkpoints/catalog/schema/table/flow/1")
    roots = [*(str(SAMPLES / name) for name in names), str(tmp_path / "pipeline")]
    file = tmp_path / "rows"
    plain = ckpt.scan(roots, all_versions=True)
    with pytest.raises(KeyboardInterrupt):
        ckpt.scan(roots, all_versions=True, resume=file, watcher=interrupt_after(len(plain.checkpoints)))
    found = ckpt.scan(roots, all_versions=True, resume=file)
    assert found.checkpoints == plain.checkpoints
    assert found.resumed == len(plain.checkpoints) - 1
    assert any(row.pipeline for row in found.checkpoints)
    assert any(row.worst for row in found.checkpoints)


def test_what_could_not_be_looked_at_is_tried_again(copy_of: CopyOf, tmp_path: Path) -> None:
    bad = copy_of("stateless-4.2", to="all/bad")
    copy_of("stateless-4.2", to="all/other")
    moved = bad / "offsets"
    moved.rename(bad / "elsewhere")
    moved.symlink_to(moved)
    root, file = str(bad.parent), tmp_path / "rows"
    first = ckpt.scan(root)
    assert [row.error is None for row in first.checkpoints] == [False, True]
    interrupt(root, file, 2)
    moved.unlink()
    (bad / "elsewhere").rename(moved)
    found = ckpt.scan(root, resume=file)
    assert [row.error for row in found.checkpoints] == [None, None]


def test_those_without_a_change_are_not_asked_again(tree: str, tmp_path: Path) -> None:
    file, later = tmp_path / "rows", datetime(2500, 1, 1, tzinfo=UTC)
    with pytest.raises(KeyboardInterrupt):
        ckpt.scan(tree, jobs=1, resume=file, changed_since=later, watcher=interrupt_after(12))
    kept = lines_in(file)
    assert [row for *_, row in kept] == [None] * len(kept)
    found = ckpt.scan(tree, resume=file, changed_since=later + timedelta(1))
    assert found.resumed == len(kept)


OTHER_STORE = {"storage_options": {"endpoint_override": "elsewhere:9000", "secret_key": "hush"}}


def started_over(file: Path, **asked: object) -> str:
    """Scan with a file whose rows cannot be used: the answer is that of a scan without it, and the file is gone."""
    found = ckpt.scan(resume=file, **asked)  # type: ignore[arg-type]
    plain = ckpt.scan(**asked)  # type: ignore[arg-type]
    assert (found.checkpoints, found.resumed, file.exists()) == (plain.checkpoints, 0, False)
    assert ckpt.scan(resume=file, **asked).started_over is None  # type: ignore[arg-type]
    return str(found.started_over)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{"depth": 1}, {"all_versions": True}, {"changed_since": "1970-01-02"}, {"roots": "."}, OTHER_STORE]
)
def test_rows_of_another_scan_are_replaced(
    change: dict[str, object], tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(SAMPLES / "stateless-4.2", tmp_path / "here"))
    file = tmp_path / "rows"
    interrupt(tree, file)
    assert started_over(file, **{"roots": tree, **change}) == "that scan had other arguments"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "why"), [(-0.01, "which is in the future"), (1.01, "more than a day ago"), (400, "more than a day ago")]
)
def test_rows_of_another_day_are_replaced(
    days: float, why: str, tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    now = unfinished.read_clock_ms() + int(days * 86_400_000)
    monkeypatch.setattr("ckpt.inspection.scan.scan.read_clock_ms", lambda: now)
    assert re.fullmatch(f"that scan began at 20.*Z, {why}", started_over(file, roots=tree))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a row that is no JSON": lambda text: text.replace(b'"name": ', b"?", 1),
    "a row of another form": lambda text: text.replace(b'"name": "', b'"name": 7, "was": "', 1),
    "bytes that a crash left": lambda text: text[:400] + bytes(100) + text[500:],
    "half of the first line": lambda text: text[:60],
    "a first line without a key": lambda text: text.replace(b'"depth": ', b'"deep": ', 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_rows_are_replaced(damage: str, tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    before = file.read_bytes()
    file.write_bytes(DAMAGES[damage](before))
    assert file.read_bytes() != before
    assert started_over(file, roots=tree) == "they are damaged"


def test_rows_of_another_version_are_replaced(tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    file.write_bytes(re.sub(rb'"version": "[^"]*"', b'"version": "0.0.9"', file.read_bytes(), count=1))
    assert started_over(file, roots=tree) == "ckpt 0.0.9 wrote them"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json", "jsonl", "prometheus"])
def test_every_form_says_that_it_started_over(form: str, tree: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    done = ckpt("scan", tree, "--resume", file, "--all-versions", "-o", form)
    assert done.exit_code == ckpt("scan", tree, "--all-versions", "-o", form).exit_code
    assert "that scan had other arguments" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("text", ["notes\n", "notes", "{}\n", "[" * 100_000 + "\n", '{"version": 1}\n', "\n"])
def test_another_file_is_refused_and_stays(text: str, tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises(UsageError, match="it does not come from an interrupted scan"):
        ckpt.scan(tree, resume=file)
    assert file.read_text() == text


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)])
def test_what_is_no_file_is_refused_and_stays(make: Callable[[Path], None], tree: str, tmp_path: Path) -> None:
    make(tmp_path / "rows")
    with pytest.raises(UsageError, match=r"`resume` .*rows: "):
        ckpt.scan(tree, resume=tmp_path / "rows")
    assert os.path.lexists(tmp_path / "rows")


@pytest.mark.parametrize("name", ["rows", "offsets/9", "state/0/0/rows"])
def test_nothing_is_written_into_a_checkpoint(name: str, copy_of: CopyOf, tmp_path: Path) -> None:
    path = copy_of("aggregation-hdfs-4.2", to="cp")
    before = sorted(path.rglob("*"))
    (tmp_path / "link").symlink_to(path)
    for file in (path / name, tmp_path / "link" / name):
        with pytest.raises(UsageError, match=r"cp is a checkpoint, and ckpt does not write there"):
            ckpt.scan(str(path), resume=file)
    assert sorted(path.rglob("*")) == before


def test_a_relative_root_is_that_of_its_folder(tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, (here, elsewhere) = tmp_path / "rows", (tmp_path / "here", tmp_path / "elsewhere")
    here.mkdir()
    shutil.copytree(SAMPLES / "damaged-missing-sst", elsewhere / "tree" / "q")
    (here / "tree").symlink_to(tree)
    monkeypatch.chdir(here)
    interrupt("tree", file)
    monkeypatch.chdir(elsewhere)
    found = ckpt.scan("tree", resume=file)
    assert (found.resumed, len(found.checkpoints)) == (0, 1)


def test_rows_stay_where_a_root_answers_no_more(tree: str, tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "rows"
    root.symlink_to(tree)
    interrupt(str(root), file)
    before = file.read_bytes()
    root.unlink()
    with pytest.raises(StorageError, match=r"root does not exist.*; the results so far are in .*rows"):
        ckpt.scan(str(root), resume=file)
    assert file.read_bytes() == before


def test_a_file_that_was_removed_meanwhile_ends_nothing(tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    scanned = ckpt.scan(tree, resume=file, watcher=lambda looked_at, _: file.unlink() if looked_at == 5 else None)
    assert scanned.checkpoints == ckpt.scan(tree).checkpoints


def test_a_full_disk_is_named(tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as a full disk: the write fails
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limit[1]))
    try:
        with pytest.raises(CkptError, match="rows cannot be written: File too large"):
            ckpt.scan(tree, jobs=1, resume=file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert ckpt.scan(tree, resume=file).resumed > 0


def test_half_a_line_is_left_out(tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    kept = lines_in(file)
    file.write_bytes(file.read_bytes()[:-40])
    found = ckpt.scan(tree, resume=file)
    assert found.resumed == len(kept) - 1
    assert found.checkpoints == ckpt.scan(tree).checkpoints


def test_two_scans_do_not_write_one_file(tree: str, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    refused: list[str] = []

    def scan_too(_: int, __: int) -> None:
        with pytest.raises(CkptError, match="another scan is writing") as error:
            ckpt.scan(tree, resume=file)
        refused.append(str(error.value))

    ckpt.scan(tree, resume=file, watcher=scan_too)
    assert refused


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[CountingS3]:
    """48 checkpoints in S3, with 5 ms a request."""
    shutil.copytree(SAMPLES / "stateless-4.2", tmp_path / "one", ignore=shutil.ignore_patterns("*.crc"))
    (tmp_path / "served").mkdir()
    shown = {f"bucket/team-{number % 7}/q{number}": tmp_path / "one" for number in range(48)}
    with counting_s3(tmp_path / "served", 5, shown) as server:
        yield server


@pytest.mark.slow
def test_connections_are_shared_by_all_processes(fleet: CountingS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt.inspection.scan.scan._WORTH_A_PROCESS", 12)
    found = ckpt.scan("s3://bucket", storage_options=fleet.options, jobs=4)
    assert {row.latest_batch for row in found.checkpoints} == {5}
    assert len(found.checkpoints) == 48
    assert 32 < fleet.most_connections <= REQUESTS_AT_ONCE


@pytest.mark.slow
def test_a_checkpoint_that_fails_is_one_line(fleet: CountingS3) -> None:
    fleet.denied = ("team-3/q3/offsets/4", "team-4/q4/metadata", "q5/")
    found = ckpt.scan("s3://bucket", storage_options=fleet.options, jobs=1)
    wrong = [row for row in found.checkpoints if row.severity != "note"]
    assert sorted(row.name for row in wrong) == ["q3", "q4", "q5"]
    assert len(found.checkpoints) == 48


@pytest.mark.slow
def test_a_store_that_answers_no_more_ends_it_and_the_rows_stay(fleet: CountingS3, tmp_path: Path) -> None:
    file = tmp_path / "rows"

    def deny(done: int, _: int) -> None:
        if done == 16:
            fleet.denied = ("",)

    with pytest.raises(StorageError, match=r"; the results so far are in .*/rows"):
        ckpt.scan("s3://bucket", storage_options=fleet.options, jobs=1, resume=file, watcher=deny)
    kept = lines_in(file)
    assert 8 <= len(kept) < 40
    fleet.denied = ()
    fleet.requests.clear()
    found = ckpt.scan("s3://bucket", storage_options=fleet.options, jobs=1, resume=file)
    assert found.resumed == len(kept)
    assert [row.error for row in found.checkpoints] == [None] * 48
    asked = fleet.requests["GET"]
    fleet.requests.clear()
    plain = ckpt.scan("s3://bucket", storage_options=fleet.options, jobs=1)
    asked -= len(kept)  # one for each, to recognise it as a checkpoint
    assert asked * 48 == fleet.requests["GET"] * (48 - len(kept))
    assert replace(found, began_ms=0, ended_ms=0, resumed=0) == replace(plain, began_ms=0, ended_ms=0)


@pytest.mark.slow
def test_ctrl_c_says_how_to_continue(fleet: CountingS3, ckpt: Ckpt, tmp_path: Path) -> None:
    file, options = tmp_path / "a file", [f"--storage-options={name}={value}" for name, value in fleet.options.items()]
    words = ["scan", "s3://bucket", "--resume", str(file), "--jobs", "1", "-o", "json", *options]
    fleet.ms = 100
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it
    process = subprocess.Popen([*command(), *words], cwd=HERE, stdout=-1, stderr=-1, text=True, preexec_fn=heed)
    while process.poll() is None and not (file.exists() and len(file.read_text().splitlines()) > 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == f"ckpt: interrupted: with --resume '{file}' the same command continues\n"
    kept, fleet.ms = len(lines_in(file)), 0
    document = ckpt(*words).json()
    assert (document["resumed"], len(document["checkpoints"])) == (kept, 48)
    page = ckpt("scan", "s3://bucket", "--resume", file, *options).stdout
    assert "resumed" not in page


def test_a_page_says_what_is_of_before(tree: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    interrupt(tree, file)
    kept = len(lines_in(file))
    page = " ".join(ckpt("scan", tree, "--resume", file).stdout.split())
    assert f"resumed {kept} checkpoints of the interrupted scan, which began 20" in page
