"""The first remedy of a page about a source, obeyed by the letter, by a query whose sink remembers batches."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tests.support.remedies import remove
from tests.support.spark.mutations import copied

Answer = dict[str, Any]
BATCHES = 3  # before the incident
LATER = (50, 51)  # versions that come once the advice was obeyed: the first is read with it, the second without


def ckpt(*words: object) -> tuple[int, str]:
    """Exit code and output of a command."""
    (script,) = entry_points(group="console_scripts", name="ckpt")
    run = CliRunner().invoke(script.load(), [*map(str, words)], catch_exceptions=False)
    return run.exit_code, run.stdout


@dataclass
class Advice:
    """The remedy of the first finding about a source, and what it takes."""

    code: str
    remedy: str

    def commands(self, of: int = 0) -> list[str]:
        """Those that change the checkpoint before the start, of the first or second way to go on."""
        ways = self.remedy.partition(" Afterwards ")[0].split(" instead, ")
        return _changing(ways[of])

    @property
    def commands_afterwards(self) -> list[str]:
        """Those after it."""
        return _changing(self.remedy.partition(" Afterwards ")[2])

    @property
    def options(self) -> dict[str, str]:
        """Of the reader."""
        said = re.findall(r"Start the query with (?:the option )?(\w+)=(\w+)", self.remedy)
        return dict(said + re.findall(r"and with the option (\w+)=(\w+)", self.remedy))

    @property
    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"with the setting (spark\.[\w.]+)=(\w+)", self.remedy))

    @property
    def new_checkpoint(self) -> bool:
        return "Start the query with a new checkpoint" in self.remedy


def _changing(text: str) -> list[str]:
    """The commands in a text, but those that only show something."""
    found = re.findall("`ckpt ([^`]+)`", text)
    return [one for one in found if one.startswith(("offsets set", "skip", "rewind", "repair"))]


def advised(checkpoint: Path, options: Mapping[str, str]) -> Advice:
    """What the page says of a source."""
    asked = [word for key, value in options.items() for word in ("--source-options", f"0.{key}={value}")]
    found = json.loads(ckpt("inspect", checkpoint, "--sources", *asked, "--spark", "4.2", "-o", "json")[1])["findings"]
    said = [one for one in found if re.match("CKPT4(01|[256])", one["code"])]
    return Advice(said[0]["code"], said[0]["remedy"]) if said else Advice("", "")


def done(command: str, number: int, place: Path) -> list[str]:
    """Run a command that shows a plan, and then the one that its page ends with."""
    words = shlex.split(command)
    code, page = ckpt(*words)
    assert code == 1, page
    (last,) = [line.strip() for line in page.partition("\nNext")[2].splitlines() if line.strip().endswith("--apply")]
    code, page = ckpt(*shlex.split(last)[1:], "--grace", "0", "--backup", place / f"backup-{number}")
    assert code == 0, page
    for batch in re.findall(r"put a file (\d+) that holds v1", " ".join(page.split())):
        entry = place / "out" / "_spark_metadata" / batch
        if entry.parent.exists() and not entry.exists():
            entry.write_text("v1")
    return [last.replace(str(place), "/place")]


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
