"""What was said of checkpoints and sinks that no longer fit, what was done about it, and what came of that.

`python -m tests.support.spark.recording sink-mismatches` runs all of it with real queries, and keeps beside the
answers what ckpt was asked about: checkpoints, and the logs of their sinks, each time. So a recorded case asks the
ckpt of today.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ckpt.changes.fixes.repair import repair
from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from ckpt.changes.skip.plan import skip
from ckpt.new.copy.copy import copy
from tests.live.sink.mismatches import BOTH_SINKS, CASES, ONLY_DELTA, Asked, sink_goes_back, uncommitted
from tests.live.sink.remedies_followed import BATCHES
from tests.live.sink.stateful import NEWEST, Numbers
from tests.support.cli import invoke
from tests.support.remedies import NOW, remove
from tests.support.spark.queries import STATE_STORES

KEPT = Path(__file__).with_name("mismatches_repaired.tar.xz")
LOGS = ("checkpoint", "out/_delta_log", "out/_spark_metadata")
Answer = dict[str, Any]
Said = dict[str, Any]


class Told:
    """Asks ckpt about places, and keeps what it was asked about."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.kept: list[Mapping[str, bytes]] = []

    def ask(self, place: Path) -> Said:
        """What `ckpt inspect --sink` says."""
        files = sorted(file for logs in LOGS for file in (place / logs).rglob("*") if file.is_file())
        self.kept.append({str(file.relative_to(place)): file.read_bytes() for file in files})
        self.said.append(_inspected(place))
        return self.said[-1]


def inspected(checkpoint: Path, sink: Path, spark: str) -> Said:
    words = ["inspect", checkpoint, "--sink", sink, "--spark", spark, "--progress", "sync"]
    said: Said = json.loads(invoke(*words, "-o", "json").stdout)
    return said


def _inspected(place: Path) -> Said:
    return inspected(place / "checkpoint", place / "out", "4.2")


Scenario = Callable[[Asked, Told], Answer]


def _started(query: Asked, place: Path) -> Answer:
    """What came of a start: its error, what reading the sink failed with, and how often each row is there."""
    error, unreadable, times = query.start(place), "", dict[int, int]()
    try:
        times = query.times(place)
    except Exception as failure:
        unreadable = str(failure)
    return {"error": error, "unreadable": unreadable, "times": times}


def _forecast(name: str, query: Asked, told: Told) -> Answer:
    """Something happened, and the query is started as it is."""
    place = query.copied(name.replace(" ", "-").replace(",", ""))
    {**BOTH_SINKS, **ONLY_DELTA}[name](query, place)
    before = query.times(place)
    told.ask(place)
    return {"before": before, **_started(query, place)}


def _copied_with_a_new_id(query: Asked, told: Told) -> Answer:
    place = query.copied("restored-and-copied")
    query.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {BATCHES - 3}", place)
    told.ask(place)
    copied = copy(str(place / "checkpoint"), str(place / "new"), batch=BATCHES - 3, new_id=True)
    shutil.rmtree(place / "checkpoint")
    Path(copied.to).rename(place / "checkpoint")
    return _started(query, place)


def _named_again(query: Asked, told: Told) -> Answer:
    """A lost ``metadata`` is written with the id that the table has, after a crash between sink and commit."""
    place = query.copied("named-again")
    uncommitted(query, place)
    remove(place / "checkpoint" / "metadata")
    query_id = told.ask(place)["sink"]["query_id"]
    repair(str(place / "checkpoint"), query_id=query_id, **NOW)
    told.ask(place)
    return _started(query, place)


def _told_to_remember(query: Asked, told: Told, *, cleaned: bool) -> Answer:
    """The statement of the page, by the letter, after a crash between sink and commit."""
    place = query.copied(f"told-to-remember-{cleaned}")
    ONLY_DELTA["forgotten"](query, place)
    if cleaned:
        query.checkpointed(place)
    (remedy,) = [one["remedy"] for one in told.ask(place)["findings"] if one["code"] in ("CKPT414", "CKPT415")]
    for statement in re.findall("`(ALTER TABLE [^`]*)`", remedy):
        query.sql(statement.replace("...", "{table}"), place)
    told.ask(place)
    return {"remedy": remedy, **_started(query, place)}


def _made_good(query: Asked, told: Told) -> Answer:
    place = query.copied("made-good")
    sink_goes_back(2)(query, place)
    rewind(str(place / "checkpoint"), to_batch=told.ask(place)["sink"]["last_batch"], replay=Replayed.NEW, **NOW)
    told.ask(place)
    return _started(query, place)


def _holes(query: Asked, told: Told) -> Answer:
    place = query.copied("holes")
    sink_goes_back(2)(query, place)
    told.ask(place)
    answer = _started(query, place)
    told.ask(place)
    return answer


def _skipped(query: Asked, told: Told, *, obeyed: bool) -> Answer:
    place, newest = query.copied(f"skipped-{obeyed}"), BATCHES - 1
    remove(place / "checkpoint" / "commits" / str(newest))
    remove(place / "out" / "_spark_metadata" / str(newest))
    plan, receipt = skip(str(place / "checkpoint"), **NOW)
    assert receipt.applied, receipt.problem
    if obeyed:
        (place / "out" / "_spark_metadata" / str(newest)).write_text("v1")
    told.ask(place)
    return {"warnings": list(map(str, plan.notices)), **_started(query, place)}


def _files_forgotten(query: Asked, told: Told) -> Answer:
    place = query.copied("forgotten-files")
    rewind(str(place / "checkpoint"), to_batch=BATCHES - 4, replay=Replayed.NEW, **NOW)
    told.ask(place)
    for batch in range(BATCHES - 3, BATCHES):
        remove(place / "out" / "_spark_metadata" / str(batch))
    told.ask(place)
    return _started(query, place)


def _stateful(version: int, asked: Asked, told: Told) -> Answer:
    """A query with state crashes between sink and commit; with format 2 its state is computed by a start into noop."""
    folder = asked.folder / f"stateful-{version}"
    folder.mkdir()
    query = Numbers(asked.spark, folder, asked.sink, STATE_STORES["format2"] if version == 2 else {})
    old = folder / "old"
    query.add(0, NEWEST + 1)
    assert query.start(old) == ""
    remove(old / "checkpoint" / "commits" / str(NEWEST))
    query.add(NEWEST + 1)
    told.ask(old)
    answer: Answer = {}
    if version == 2:
        answer["at once"] = query.start(query.copy(old, "at-once"))
        answer["noop"] = query.start(old, noop=True)
        told.ask(old)
    return answer | {"error": query.start(old), "times": query.times(old)}


_CURES: Mapping[str, Scenario] = {
    "delta: copied with a new id": _copied_with_a_new_id,
    "delta: named again": _named_again,
    "delta: told to remember": partial(_told_to_remember, cleaned=False),
    "delta: told to remember, log cleaned": partial(_told_to_remember, cleaned=True),
    "delta: made good": _made_good,
    "parquet: made good": _made_good,
    "parquet: holes": _holes,
    "parquet: skipped": partial(_skipped, obeyed=False),
    "parquet: skipped and filled": partial(_skipped, obeyed=True),
    "parquet: files forgotten": _files_forgotten,
    **{
        f"{sink}: stateful {version}": partial(_stateful, version)
        for sink in ("delta", "parquet")
        for version in (1, 2)
    },
}
SCENARIOS: Mapping[str, Scenario] = {**{f"{sink}: {name}": partial(_forecast, name) for sink, name in CASES}, **_CURES}
LIVE = ("delta: restored, uncommitted", "delta: named again", "parquet: made good")
"""What is run unless all is asked for."""


def found(spark: Any, folder: Path, names: Iterable[str]) -> dict[str, tuple[Answer, Told]]:
    """What came of some of them, and what ckpt was asked meanwhile."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    queries: dict[str, Asked] = {}
    answers = {}
    for name in names:
        sink = name.partition(":")[0]
        if sink not in queries:
            (folder / sink).mkdir()
            queries[sink] = Asked(own, folder / sink, sink)
            queries[sink].run_old()
        told = Told()
        answers[name] = (json.loads(json.dumps(SCENARIOS[name](queries[sink], told))), told)
    return answers


def recorded(spark: Any, folder: Path) -> dict[str, Answer]:
    """All of them; what ckpt was asked is kept."""
    answers = found(spark, folder, SCENARIOS)
    keep(KEPT, {name: told.kept for name, (_, told) in answers.items()})
    return {name: answer for name, (answer, _) in answers.items()}


def keep(archive: Path, asked: Mapping[str, Sequence[Mapping[str, bytes]]]) -> None:
    """Pack the files that ckpt was asked about in each scenario, each time."""
    with tarfile.open(archive, "w:xz") as packed:
        for name, each in asked.items():
            for number, files in enumerate(each):
                for path, data in files.items():
                    entry = tarfile.TarInfo(f"{name}/{number}/{path}")
                    entry.size = len(data)
                    packed.addfile(entry, io.BytesIO(data))


def ask_again(
    archive: Path, folder: Path, ask: Callable[[Path], Said], parts: Sequence[str] = ("checkpoint", "out")
) -> dict[str, list[Said]]:
    """What ckpt says today of what it was asked when scenarios were recorded; ``folder`` is empty.

    An archive has no empty folders, so that the ``parts`` of each place may have to be made.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    said: dict[str, list[Said]] = {}
    for place in sorted(folder.glob("*/*")):
        for part in parts:
            (place / part).mkdir(parents=True, exist_ok=True)
        said.setdefault(place.parent.name, []).append(ask(place))
    return said


def asked_again(folder: Path) -> dict[str, list[Said]]:
    return ask_again(KEPT, folder, _inspected)
