"""What Spark reads of a folder: the suite `files` of `python -m tests.record`.

What ckpt saw of the folder before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ckpt import open_checkpoint
from ckpt.live.asking import ask_sources
from ckpt.live.records import Answer, FilesNow
from tests.live.files.cases import EVERY, INCIDENTS, LAST, Query
from tests.record.answers import Document, OneFile, break_before
from tests.record.suite import Cases
from tests.record.worker import Session


@dataclass(frozen=True)
class Case:
    """What happened to the folder, and how the newest batch is left."""

    incident: str
    last: str

    @property
    def name(self) -> str:
        """Under which the answer is kept."""
        return f"{self.incident}, {self.last}"


class Folders(Cases[Case]):
    """Starts at one folder, which is put back for each."""

    answers = OneFile(Path(__file__).with_name("recorded.json"), break_before("now", sort_keys=True))
    role = "files"

    def cases(self, minor: str) -> list[Case]:
        return [Case(name, last) for name in EVERY for last in (LAST[:2] if name in INCIDENTS else LAST)]

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        place = folder.with_name("query")
        if not place.exists():
            session.ask({"do": "make", "place": str(place)})
        checkpoint = folder.with_name(f"{case.incident} {case.last}")
        options = Query(None, place).happen(case.incident, checkpoint, case.last)
        (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: options})
        job = {"do": "start", "place": str(place), "checkpoint": str(checkpoint), "options": options}
        said = session.ask(job)
        error = said["error"] and said["error"].splitlines()[0].partition("exception: ")[2]
        said["error"] = error and error.replace(str(folder.parent), "")
        return {"now": _now(source.answer), "spark": said}


def _now(answer: Answer) -> dict[str, Any] | None:
    """What ckpt saw; None: it does not ask. The files without the place where they were recorded."""
    if not isinstance(answer, FilesNow):
        return None
    return asdict(answer) | {
        "gone": [Path(one).name for one in answer.gone],
        "refused": answer.refused and f"file:///{Path(answer.refused).name}",
        "place": Path(answer.place).name,
    }


SUITE = Folders()
