"""The first remedy of a page about a source, obeyed by the letter, by a query whose sink remembers batches."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckpt import Inspection, inspect
from ckpt.advice import Advice, Call, Code, Do, Instruction, Setting, Step
from ckpt.advice.spelling import list_words, quote_line
from ckpt.restart.book import AT_NEW
from tests.support.cli import invoke
from tests.support.remedies import remove
from tests.support.spark.mutations import copied

Answer = dict[str, Any]
BATCHES = 3  # before the incident
LATER = (50, 51)  # versions that come once the advice was obeyed: the first is read with it, the second without


def ckpt(*words: object) -> tuple[int, str]:
    """Exit code and output of a command."""
    run = invoke(*words)
    return run.exit_code, run.stdout


@dataclass
class Obeyed:
    """The advice of the first finding about a source, and what it takes."""

    code: str = ""
    advice: Advice = field(default_factory=Advice)

    def commands(self, of: int = 0) -> list[Call]:
        """Those that change the checkpoint before the start, of the first or second way to continue."""
        way = self._way(of)
        return _changing(way[: way.index(self._start)] if self._start in way else way)

    @property
    def commands_afterwards(self) -> list[Call]:
        """Those after it."""
        way = self._way(0)
        return _changing(way[way.index(self._start) :] if self._start in way else [])

    @property
    def options(self) -> dict[str, str]:
        return {key: value for key, value in self._set().items() if not key.startswith("spark.")}

    @property
    def settings(self) -> dict[str, str]:
        return {key: value for key, value in self._set().items() if key.startswith("spark.")}

    @property
    def new_checkpoint(self) -> bool:
        return self._start is not None and AT_NEW in self._start.what.parts

    @property
    def once(self) -> bool:
        return self._start is not None and "trigger once" in str(self._start.what)

    @property
    def takes(self) -> Answer:
        lines = [quote_line(step.call) for step in self.advice.all_steps() if step.call is not None]
        return {
            "advised": lines,
            "options": self.options,
            "settings": self.settings,
            "new_checkpoint": self.new_checkpoint,
        }

    def others(self) -> dict[str, Any]:
        """Ends of other topics that a command is to have if the sink has the planned batch."""
        parts = (part for step in self.advice.all_steps() for part in step.what.parts)
        ends = [part.text for part in parts if isinstance(part, Code) and part.text.startswith('"')]
        return dict(json.loads(f"{{{ends[0]}}}")) if ends else {}

    def _way(self, of: int) -> list[Step]:
        return [(step, *step.alternatives)[of if step.alternatives else 0] for step in self.advice.steps]

    @property
    def _start(self) -> Step | None:
        starts = (step for step in self.advice.all_steps() if isinstance(step.do, Instruction))
        return next((step for step in starts if isinstance(step.do, Instruction) and step.do.do is Do.START), None)

    def _set(self) -> dict[str, str]:
        parts = () if self._start is None else self._start.what.parts
        pairs = (part.text.partition("=") for part in parts if isinstance(part, Setting))
        return {key: value for key, _, value in pairs}


def _changing(steps: list[Step]) -> list[Call]:
    """The calls of steps, but those that only show something."""
    calls = (step.call for step in steps)
    return [call for call in calls if call is not None and call.name in ("offsets_set", "skip", "rewind", "repair")]


def about_source(inspection: Inspection) -> Obeyed:
    """The advice that is obeyed: of the first finding about a source."""
    of = (rated for rated in inspection.findings if re.match("CKPT4(01|[256])", rated.finding.diagnosis.code))
    rated = next(of, None)
    return Obeyed() if rated is None else Obeyed(rated.finding.diagnosis.code, rated.advice or Advice())


def advised(checkpoint: Path, options: Mapping[str, str]) -> Obeyed:
    """What ckpt says of a source."""
    return about_source(inspect(str(checkpoint), spark=["4.2"], sources=True, source_options={0: options}))


def done(call: Call, number: int, place: Path) -> list[str]:
    """Run a command that shows a plan, and then the one that its page ends with."""
    code, page = ckpt(*list_words(call)[1:], "-o", "json")
    assert code == 1, page
    steps = [step["command"] for step in json.loads(page)["next"]]
    (last,) = [words for words in steps if words and words[-1] == "--apply"]
    code, page = ckpt(*last[1:], "--grace", "0", "--backup", place / f"backup-{number}")
    assert code == 0, page
    for batch in re.findall(r"put a file (\d+) that contains only the line v1", " ".join(page.split())):
        entry = place / "out" / "_spark_metadata" / batch
        if entry.parent.exists() and not entry.exists():
            entry.write_text("v1")
    return [shlex.join(last).replace(str(place), "/place")]


class Query:
    """A query from one source into one kind of sink."""

    def __init__(self, spark: Any, folder: Path, sink: str) -> None:
        self.spark, self.folder, self.sink, self.old = spark, folder, sink, folder / "old"

    def start(
        self,
        place: Path,
        reader: Any,
        checkpoint: str = "checkpoint",
        settings: Mapping[str, str] | None = None,
        *,
        once: bool = False,
    ) -> str:
        """Read all that there is, or one batch; what it failed with."""
        for key, value in (settings or {}).items():
            self.spark.conf.set(key, value)
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        try:
            writer = reader.writeStream.format(self.sink).option("checkpointLocation", str(place / checkpoint))
            out = "out-2" if checkpoint == "new" and self.sink != "delta" else "out"
            handle = writer.option("path", str(place / out))
            handle = (handle.trigger(once=True) if once else handle.trigger(availableNow=True)).start()
            assert handle.awaitTermination(120)
        except Exception as error:
            return str(error).partition("=== Streaming Query ===")[0][:4000]
        finally:
            for key in settings or {}:
                self.spark.conf.unset(key)
        return ""

    def copied(self, name: str) -> Path:
        return copied(self.old, self.folder / name)

    def uncommit(self, place: Path, *, written: bool, newest: int = BATCHES - 1) -> None:
        """The query was killed in its newest batch, before or after the sink had it."""
        remove(place / "checkpoint" / "commits" / str(newest))
        if not written:
            for name in (f"_delta_log/{newest:020}.json", f"_spark_metadata/{newest}"):
                remove(place / "out" / name)
            (place / f"out/_delta_log/{newest:020}.crc").unlink(missing_ok=True)

    def times(self, place: Path) -> dict[int, int]:
        """How often each number is in the sink, or in both where it was given a new output folder."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        found = [self.spark.read.format(self.sink).load(str(out)).collect() for out in sorted(place.glob("out*"))]
        return dict(sorted(Counter(row[0] for rows in found for row in rows).items()))
