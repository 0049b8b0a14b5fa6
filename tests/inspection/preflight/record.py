"""What Spark does with changed queries: `preflight`, `preflight-across`, `signatures` of `python -m tests.record`.

For each version: its checkpoints (a zip), and for each change what `ckpt.preflight` said, the description of the query,
and what the start then did. Across, each version starts the checkpoints of the others that are recorded.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
import zipfile
from pathlib import Path

from tests.inspection.preflight import changes, signatures
from tests.record.answers import Document, Folder
from tests.record.suite import Suite, Whole
from tests.record.worker import RUN_S, Installed, Worker
from tests.support.places import ROOT

FOLDER = Path(__file__).parent / "recorded"
_MADE_BY = ", made by "
PLACE = Path("/tmp/ckpt-preflight")
"""Where the checkpoints are made: paths inside them begin so."""


def unpack(minor: str, to: Path) -> Path:
    """The checkpoints that a version made, below a folder."""
    with zipfile.ZipFile(FOLDER / f"{minor}.zip") as packed:
        packed.extractall(to / minor)
    for path in (to / minor).glob("*/state/*/_metadata/v2/*"):  # which name schema files by their absolute paths
        path.write_text(path.read_text().replace(f"{PLACE}/bases/", f"{to / minor}/"))
    return to / minor


def _pack(root: Path, archive: Path, *folders: str) -> None:
    """Files below folders, without Hadoop's hidden checksum files, byte for byte the same for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(path for folder in folders for path in (root / folder).rglob("*")):
            hidden = path.name.startswith(".") and path.name.endswith(".crc")
            if path.is_file() and not hidden:
                info = zipfile.ZipInfo(str(path.relative_to(root)), (2026, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(info, path.read_bytes())


class Changes(Suite):
    """Changed queries on checkpoints that the version itself made."""

    answers = Folder(FOLDER)

    def wanted(self, minor: str) -> list[str]:
        return [change.id for change in changes.changes(minor)]

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read(minor)["answers"]
        return {name: answer for name, answer in answers.items() if (_MADE_BY in name) == self._of_others}

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        if self.missing(spark.minor, only, fresh=fresh):
            shutil.rmtree(PLACE, ignore_errors=True)
            asked = [change for change in changes.changes(spark.minor) if fnmatch.fnmatch(change.id, only)]
            asked.sort(key=lambda change: change.base)  # a checkpoint serves all of its changes
            self._ask(spark, {change.id: {"base": change.base, "change": change.id} for change in asked})
            if only == "*":
                _pack(PLACE / "bases", FOLDER / f"{spark.minor}.zip", ".")

    _of_others = False

    def _ask(self, spark: Installed, jobs: dict[str, Document]) -> None:
        """Have a worker answer, and keep its answers beside those that it was not asked for."""
        with Worker(spark.python, spark.log, "preflight") as session:
            told = {name: session.ask({"folder": str(PLACE), **job}, RUN_S) for name, job in jobs.items()}
        text = json.dumps(told).replace(str(ROOT), "/project")
        kept = self.answers.read(spark.minor)["answers"]
        self.answers.write(spark.minor, {"spark": spark.version, "answers": {**kept, **json.loads(text)}})


class Across(Changes):
    """Unchanged queries on checkpoints that the other versions made, as far as these are recorded."""

    _of_others = True
    partly = True  # 3.5 and 4.1 were not asked

    def wanted(self, minor: str) -> list[str]:
        made = [(other, base) for other in self.answers.minors if other != minor for base in changes.bases(other)]
        return [f"{base.name}: nothing{_MADE_BY}{other}" for other, base in made if base.since <= minor]

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        if self.missing(spark.minor, only, fresh=fresh):
            shutil.rmtree(PLACE, ignore_errors=True)
            made = [
                path
                for other in self.answers.minors
                if other != spark.minor
                for path in unpack(other, PLACE).iterdir()
                if changes.BY_NAME[path.name].since <= spark.minor
            ]
            self._ask(
                spark,
                {
                    f"{path.name}: nothing{_MADE_BY}{path.parent.name}": {"base": path.name, "made": str(path)}
                    for path in sorted(made)
                },
            )


class Signatures(Whole):
    """Descriptions of queries, and of changes that no schema shows; Spark 4.2 and later start some."""

    answers = Folder(FOLDER / "signatures")

    def wanted(self, minor: str) -> list[str]:
        return [*signatures.BASES, *(change.id for change in signatures.changes(minor))]

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read(minor)["answers"]
        return answers

    def ask_all(self, spark: Installed) -> None:
        shutil.rmtree(PLACE, ignore_errors=True)
        told = spark.ask("signatures", {"folder": str(PLACE)})
        self.answers.write(spark.minor, {"spark": spark.version, "answers": told})
        _pack(PLACE, FOLDER / "signatures" / f"{spark.minor}.zip", "queries", "bases")


SUITE, ACROSS, SIGNATURES = Changes(), Across(), Signatures()
