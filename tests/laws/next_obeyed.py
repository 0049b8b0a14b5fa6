"""A program that obeys ``next`` literally, and a person who does what it cannot; on every damage of the oracle.

``python -m tests.laws.next_obeyed`` prints how each case ends, and what is wrong with any of them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ckpt import Inspection, inspect
from ckpt.advice import Call, Do, Hole
from ckpt.advice.spelling import list_words
from ckpt.advice.steps import flatten
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.restart.findings import Severity
from ckpt.versions import Progress
from tests.restart.oracle import answers
from tests.restart.oracle.cases import CASES, Case
from tests.restart.oracle.test_forecast import NOT_IN_THE_FILES
from tests.support.cli import invoke
from tests.support.spark import mutations

MOST_STEPS = 8  # inspect, repair-async, repair, apply, and as many again for a second damage
_MOST_ACTS = 12  # advice that is followed one after the other
_NO_REPAIR = ("inspect", "handoff", "skip")  # skip is for a row that makes every start fail: a person knows that
_STARTED = ("resumes", "starts-fresh")
EDITED = ("damaged-stale-crc",)
"""Cases whose newest offsets were edited by hand: the start reads from where the edit says."""
Document = dict[str, Any]


class End(StrEnum):
    """The step at which a program can go no further."""

    NOTHING = "nothing is to be done"
    PERSON = "a person has to do something"
    STOP = "only a copy helps"


@dataclass
class Obeyed:
    """The documents that a program saw, one for each command, and how it ended."""

    end: End
    documents: list[Document]
    commands: list[tuple[str, ...]]
    faults: list[str] = field(default_factory=list)
    last: Document | None = None  # the step at which it ended; None if there was none

    @property
    def applied(self) -> list[Document]:
        """The documents of changes that were carried out."""
        return [document for document in self.documents if document.get("applied")]

    @property
    def planned(self) -> list[Document]:
        """The steps that carried them out, as they were announced."""
        ran = zip(self.documents, self.commands[1:], strict=False)
        return [document["next"][0] for document, command in ran if "--apply" in command]


def run(*words: str) -> Document:
    """Run a command in this process as a program does, at once even if the checkpoint is new; its document."""
    now = ("--grace", "0") if {"--apply", "--undo"} & {*words} else ()
    result = invoke(*words, *now, "-o", "json")
    assert result.stdout, (words, result.exit_code, result.stderr)
    document: Document = json.loads(result.stdout)
    return document


def obey(checkpoint: Path, *first: str, without_copy: bool = False, error: str = "") -> Obeyed:
    """Run the first step of each document until there is none, or none that a program can do.

    Args:
        checkpoint: It is changed.
        first: Options of the first command, ``ckpt inspect``.
        without_copy: Where a person is to put something back, take the step after that, as one without a copy does.
        error: What the query failed with: the first command is then ``ckpt explain``, without the options.

    """
    words: tuple[str, ...] = ("ckpt", "inspect", str(checkpoint), *first)
    if error:
        words = ("ckpt", "explain", error, "--checkpoint", str(checkpoint))
    commands, documents, faults = [], [], []
    while True:
        commands.append(words)
        documents.append(run(*words[1:]))
        steps, step = documents[-1]["next"], None
        if not steps:
            end = End.NOTHING
            break
        others = [step for step in steps if step["command"] and step["command"][1] not in _NO_REPAIR]
        others += [step for step in steps if step["do"] == Do.MOVE]
        step = others[0] if others and without_copy and not documents[-1].get("applied") else steps[0]
        if step["command"] is None:
            end = End.STOP if step["stop"] else End.PERSON
            break
        words = tuple(step["command"])
        changes = [number for number, command in enumerate(commands, 1) if "--apply" in command]
        if words in commands[max(changes, default=0) :] or len(commands) >= MOST_STEPS:
            faults.append(f"it never ends: {[' '.join(command[1:]) for command in (*commands, words)]}")
            end = End.PERSON
            break
    return Obeyed(end, documents, commands, faults, step)


def named_to_put_back(step: Document) -> list[str]:
    """The files and folders that a step asks for from a copy of the checkpoint."""
    return list(step["paths"]) if step["do"] == Do.PUT_BACK else []


def act(step: Document, checkpoint: Path, whole: Path) -> bool:
    """Do what a person does who has a copy, ``whole``; False where only a decision is asked for."""
    paths = named_to_put_back(step)
    if paths:
        if not all((whole / path).exists() for path in paths):
            return False
        for path in paths:
            _put_back(checkpoint, whole, path.rstrip("/"))
        return True
    if step["do"] in (Do.MOVE, Do.DELETE) and step["paths"]:
        for path in step["paths"]:
            _remove(checkpoint / path)
        return True
    if "--query-id ID" in step["what"] or (step["do"] == Do.FIND_OUT and step["paths"] == [METADATA]):
        query_id = json.loads((whole / "metadata").read_text())["id"]
        document = run("repair", str(checkpoint), "--query-id", query_id, "--apply")
        return bool(document["applied"]) or act(document["next"][0], checkpoint, whole)
    return False


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _put_back(checkpoint: Path, whole: Path, path: str) -> None:
    """A file comes with its hidden checksums; one that is there is replaced."""
    for name in (path, str(mutations.crc_of(Path(path)))):
        source, target = whole / name, checkpoint / name
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copyfile(source, target)


def obey_with_copy(checkpoint: Path, whole: Path, *first: str) -> tuple[Obeyed, int]:
    """Obey, and do what is left to a person, until nothing is left; how often the person had to act."""
    acts = 0
    while True:
        obeyed = obey(checkpoint, *first)
        done = obeyed.faults or obeyed.applied or obeyed.last is None or acts == _MOST_ACTS
        if done or not act(obeyed.last or {}, checkpoint, whole):
            return obeyed, acts
        acts += 1


@dataclass
class Told:
    case: str
    obeyed: Obeyed
    restarts: bool  # every start that somebody may try runs in the end
    faults: list[str]
    announced: str = ""  # the cost in rows of the change
    found: str = ""


def is_hidden(case: Case) -> bool:
    """The recorded start failed, or ran, for a reason that no file shows."""
    return any(part in case.name for part in NOT_IN_THE_FILES)


def tell(case: Case, folder: Path, *first: str) -> Told:
    """Obey for one case, and list what is wrong."""
    checkpoint = mutations.copy_of(case.folder, folder / "strict", case.mutations)
    before = look(checkpoint, first)
    obeyed = obey(checkpoint, *first)
    after = look(checkpoint, first) if obeyed.applied else before
    told = Told(case.name, obeyed, not failing(after) and not unsafe(after), list(obeyed.faults))
    told.faults += _judge(case, obeyed, before, after, *({"--deep"} & {*first}))
    if obeyed.end is End.NOTHING and not is_hidden(case):  # some damages are rewinds by hand
        told.faults += _judge_position("again", position_of_done(case, before), position_of_next(after))
    if obeyed.applied:
        told.announced, told.found = announced_rows(obeyed), found_rows(obeyed)
        if told.announced != told.found:
            told.faults.append(f"rows: {told.announced} was announced, and {told.found} found")
        if case.name not in EDITED:
            told.faults += _judge_position(told.announced, position_of_done(case, before), position_of_next(after))
    return told


def look(checkpoint: Path, first: Iterable[str] = ()) -> Inspection:
    if "--deep" not in first:
        return inspect(str(checkpoint))
    from ckpt.state.verify.verify import read_every_byte

    return inspect(read_every_byte(str(checkpoint), jobs=1))


def failing(inspection: Inspection) -> list[str]:
    """The synchronous starts that somebody may try, and that fail or leave out batches."""
    starts = [f for f in inspection.counted if f.progress is Progress.SYNC]
    return [f"{f.spark}/{f.outcome}" for f in starts if not f.outcome.runs or f.lost]


def unsafe(inspection: Inspection) -> list[str]:
    """The errors that are no start's: a marked start into noop is one that the page asks for."""
    errors = (rated for rated in inspection.findings if rated.severity is Severity.ERROR)
    return [rated.finding.diagnosis.code for rated in errors if rated.finding.diagnosis.code != "CKPT419"]


def list_errors_left(after: Inspection) -> list[str]:
    """List the errors that are left, except CKPT127: only the user knows whether a query without batches ever ran."""
    return [code for code in unsafe(after) if code != "CKPT127"]


def recorded_failures(case: Case, inspection: Inspection) -> Iterator[str]:
    """The starts that the page counts, synchronous or not, and that failed when they were recorded."""
    for forecast in inspection.counted:
        answer = answers.read(str(forecast.spark))["answers"].get(f"{case.name}/{forecast.progress}")
        if answer is not None and answer["outcome"] not in _STARTED:
            yield f"{forecast.spark}/{forecast.progress}"


def _judge(case: Case, obeyed: Obeyed, before: Inspection, after: Inspection, *deep: str) -> Iterator[str]:
    failed = list(recorded_failures(case, before))
    last = obeyed.last
    if obeyed.end is End.NOTHING and not (is_hidden(case) and not deep):
        if failed:
            yield f"nothing is to be done, and {failed} failed"
        if failing(before) or unsafe(before):
            yield f"nothing is to be done, and the page says {before.verdict}"
    if obeyed.end is End.STOP:
        safe = [f for f in before.counted if f.progress is Progress.SYNC and f.outcome.runs]
        if safe and not unsafe(before):
            yield f"only a copy helps, and {[str(f.spark) for f in safe]} restart"
        if not failed and not unsafe(before) and not is_hidden(case):
            yield "only a copy helps, and no recorded start failed"
        if not obeyed.applied and run("repair", obeyed.commands[0][2], *deep)["steps"]:
            yield "only a copy helps, and `ckpt repair` has a fix"
    if obeyed.applied:
        yield from _judge_change(obeyed, before, after)
    elif last is not None and not last["what"]:
        yield "a step that says nothing"


def _judge_change(obeyed: Obeyed, before: Inspection, after: Inspection) -> Iterator[str]:
    """Starts after a change are those that its plan promised, and it says to start the query."""
    document = obeyed.applied[-1]
    promised = [(each["spark"], each["progress"], each["outcome"], each["batch_id"]) for each in document["after"]]
    found = [(str(f.spark), str(f.progress), str(f.outcome), f.batch_id) for f in after.forecasts]
    if promised != found:
        yield "the starts are not those that were promised"
    if not obeyed.documents[-1].get("applied"):
        return  # something is left, and it was looked at again
    if obeyed.end is not End.PERSON or all(step["do"] != Do.START for step in document["next"]):
        yield f"after a change it ends with {obeyed.last}"
    starts = [f for f in after.counted if f.progress is Progress.SYNC]
    if not any(f.outcome.runs and not f.lost for f in starts) and before.sound is False:
        yield f"no start runs after the change: {after.verdict}"
    if list_errors_left(after):
        yield f"after the change there is {list_errors_left(after)}: {after.verdict}"


def announced_rows(obeyed: Obeyed) -> str:
    """The cost in rows that the step announced which changed the checkpoint; of several the worst."""
    order = ["none", "again", "unknown", "left-out"]
    return str(max((step["rows"] for step in obeyed.planned), key=order.index))


def found_rows(obeyed: Obeyed) -> str:
    """The cost in rows by what was done: what the receipts say, and what had to be accepted."""
    accepted = {word for command in obeyed.commands for word in command}
    if {"--accept-skip", "skip"} & accepted:
        return "left-out"
    replayed = any(document.get("replay") for document in obeyed.applied)
    return "again" if replayed or "--accept-replay" in accepted else "none"


def position_of_done(case: Case, before: Inspection) -> int | None:
    """Where the newest batch ended that is done, by the offsets of the sample; None where no number says it."""
    done = max((int(name) for name in before.checkpoint.listing.in_folder("commits") if name.isdecimal()), default=-1)
    log = open_checkpoint(str(case.folder), batches=0).offsets.readable(done)
    return _number(log.sources[0].value) if log is not None and len(log.sources) == 1 else None


def position_of_next(after: Inspection) -> int | None:
    """Where the next start begins to read; None where no number says it."""
    start = next((f for f in after.counted if f.outcome.runs and f.progress is Progress.SYNC and f.sources), None)
    return None if start is None or len(start.sources) != 1 else _number(start.sources[0].start)


def _number(offset: Any) -> int | None:
    """How far a rate or file source is in an offset."""
    return next((offset[key] for key in ("offset", "logOffset") if key in (offset or {})), None)


def _judge_position(announced: str, done: int | None, start: int | None) -> Iterator[str]:
    """By the offsets of the sample, which no damage has touched: rows are never left out unsaid, nor read again."""
    if done is None or start is None:
        return
    if start > done and announced != "left-out":
        yield f"rows from {done} to {start} are never read, and {announced} was announced"
    if start < done and announced == "none":
        yield f"rows from {start} to {done} are read again, and {announced} was announced"


def refused_offers(checkpoint: Path) -> dict[str, str]:
    """The commands that the page of a checkpoint, and those that it leads to, offer here, and that refuse; and why.

    Not those that a person completes (``URI``), and none that changes the checkpoint; what a later step has in its text
    is for after the steps before it.
    """
    place, refused = str(checkpoint), {}
    advised = (rated.advice for rated in look(checkpoint).troubles if rated.advice)
    steps = ((later, step) for advice in advised for later, one in enumerate(advice.steps) for step in flatten((one,)))
    parts = (part for later, step in steps for part in (*(() if later else step.what.parts), step.do))
    own = [("ckpt", "inspect", place), ("ckpt", "offsets", "show", place)]
    todo = [*own, *(list_words(part) for part in parts if isinstance(part, Call) and part.arguments)]
    seen = set[tuple[str, ...]]()
    while todo:
        words = todo.pop(0)
        if words in seen or "--apply" in words or {*words} & {*Hole} - {Hole.NEW.value}:
            continue
        seen.add(words)
        new = str(checkpoint.with_name("new"))
        result = invoke(*(new if word == Hole.NEW else word for word in words[1:]), "-o", "json")
        document = json.loads(result.stdout or "{}")
        if result.exit_code == 3 and words not in own:
            refused[" ".join(words)] = document.get("refused") or result.stderr
        if Hole.NEW not in words:
            todo += [tuple(step["command"]) for step in document.get("next", ()) if step["command"]]
    return refused


def oracle_cases() -> list[Case]:
    """All whose sample is on this machine."""
    return [case for case in CASES if case.folder.is_dir()]


def deep_cases() -> list[Case]:
    """Those of which a plain look misses something."""
    return [case for case in oracle_cases() if case.stateful and case.name.startswith(("flipped-", "contents-"))]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        for title, cases, first in (("plain", oracle_cases(), ()), ("--deep", deep_cases(), ("--deep", "--jobs", "1"))):
            told = []
            for number, case in enumerate(cases):
                folder = Path(scratch) / f"{title}-{number}"
                told.append(tell(case, folder, *first))
                shutil.rmtree(folder)
            _say(f"{title}: {len(told)} cases")
            print_figures(told)


def print_figures(told: list[Told]) -> None:
    """Print how cases ended, one line a kind."""
    ends: Counter[str] = Counter()
    for one in told:
        changed = "changed, then " if one.obeyed.applied else ""
        ends[f"{changed}{one.obeyed.end}; {'restarts' if one.restarts else 'does not restart everywhere'}"] += 1
    rows = Counter(f"{one.announced} announced, {one.found} found" for one in told if one.announced)
    for kind, count in (*ends.most_common(), *rows.most_common()):
        _say(f"  {count:5} {kind}")
    for one in told:
        for fault in one.faults:
            _say(f"  FAULT {one.case}: {fault}")


if __name__ == "__main__":
    main()
