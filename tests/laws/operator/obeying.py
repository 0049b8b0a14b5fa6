"""The operator: runs what `next` says, starts the query as the page says, asks again when a start fails, and counts."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckpt.advice import Do
from ckpt.restart.book import BOOK
from tests.laws.next_obeyed import Document, End, obey, run
from tests.laws.operator.counting import Announced, Count, Outcome, count_rows, shorten
from tests.laws.operator.disasters import MENU
from tests.laws.operator.disasters.harm import remove
from tests.laws.operator.queries import BATCHES, SIZES, World
from tests.laws.operator.seeds import Seed

MOST_ROUNDS = 4  # failed starts after each of which ckpt is asked
MOST_TRIES = 4  # other changes that are started, of those that can be carried out
MORE = 3  # files in a batch of the last start
_OPTION = re.compile(r'\b(failOnDataLoss|skipChangeCommits|ignoreChanges|ignoreDeletes)(?:=|", "?)(true|false)')
_SETTING = re.compile(r"(spark\.sql\.streaming\.[\w.]+)=(\w+)")
_FROM_SINK = re.compile(r"_spark_metadata/(\d+)")
_RESTORED = re.compile(r"RESTORE[^`]*`(ckpt copy [^`]*--batch (\d+)[^`]*)`")
_OTHER_APP = re.compile(r"RESTORE\D*(\d+)[^`.]*txnAppId")
_CHECKED = BOOK.content["findings"]["CKPT211"]["advice"][0]["find-out"].partition("{")[0]
"""Advice to check what these tests make sure of: exactly one query uses the checkpoint."""
_IN_THIS_TABLE = BOOK.content["findings"]["CKPT414"]["advice"][0]["find-out"].partition(":")[0]
_WRITTEN = BOOK.content["words"]["find_out_written"].partition("{")[0]
_SENTENCE = re.compile(r"[Ss]tart the query with [^.]*")
_START = re.compile(r"[Ss]tart the query|Restart the query")
_NOT_SO = re.compile(
    r"(?i)do not start|only if it has never|a Spark version|Spark 4|new checkpoint|that wrote|another trigger|"
    r"continuous|on the new table|on a copy"
)
"""What no start of this query on this checkpoint is."""


@dataclass
class Story:
    """What an operator did and saw for one seed."""

    outcome: Outcome = Outcome.STUCK
    commands: list[str] = field(default_factory=list)
    announced: Announced = field(default_factory=Announced)
    count: Count = field(default_factory=Count)
    why: str = ""
    ended_well: str = ""  # a sequence of ckpt's commands that would have, where the operator came to no end
    asks: int = 0  # how often ckpt was asked
    obeyed: str = ""  # a digest of the checkpoint after the first time, and how the query was started then

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"class": str(self.outcome), "commands": self.commands}
        document["announced"] = self.announced.as_json()
        document["counted"] = {"lost": shorten(self.count.lost), "doubled": shorten(self.count.doubled)}
        if self.count.wrong:
            document["counted"]["wrong"] = self.count.wrong
        more = {"why": self.why, "ended well": self.ended_well}
        return document | {key: text for key, text in more.items() if text}


class Unfinished(Exception):
    """Raised where the operator cannot go on; the outcome, and why."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


def suffer(world: World, seed: Seed) -> None:
    """Let happen to a query what a seed says; then the source has more."""
    rng = seed.random()
    for name in seed.disasters:
        MENU[name].happen(world, rng)
    if world.into.exists() or world.kind.source == "kafka":
        world.add(2)
    if seed.started:
        world.start(2)


def follow(world: World, *, asked: bool, known: Story | None = None) -> Story:
    """Obey, start, add more, and count.

    Args:
        world: It is changed.
        asked: Whether `ckpt inspect` is told where source and sink are.
        known: What became of the same query when ckpt was asked otherwise. What obeying leaves is often the same, and
            Spark is then not asked again.

    """
    operator = _Operator(world, _options(world) if asked else (), Story(), known)
    try:
        operator.get_it_started()
        if not operator.is_known():
            world.add(2, closing=True)
            operator.get_it_started(again=True)
    except Unfinished as end:
        operator.story.outcome, operator.story.why = end.outcome, operator.plain(str(end))
        return operator.story
    _judge(world, operator.story, known.count if known is not None and operator.is_known() else None)
    return operator.story


def _judge(world: World, story: Story, count: Count | None = None) -> None:
    try:
        story.count = count or count_rows(world, world.rows())
    except Exception as error:
        text = re.sub(r"\bo\d+\b|file:\S*/(?=\w)|/\S*/(?=_)", "", _first_line(error))
        story.count = Count(wrong=f"readers of the sink fail: {text[:120]}")
    if story.count.exact:
        story.outcome = Outcome.EXACT
    elif story.announced.covers(story.count):
        story.outcome = Outcome.ANNOUNCED
    else:
        story.outcome = Outcome.UNSEEN if story.announced.unseen else Outcome.UNANNOUNCED


def _options(world: World) -> tuple[str, ...]:
    """What an operator adds who knows where source and sink are."""
    words = ["--sources"] if world.kind.source != "rate" else []
    for source in range(2 if world.kind.operator == "join" else 1):
        if world.kind.source == "kafka":
            options = {"kafka.bootstrap.servers": world.broker.servers, "subscribe": world.topic}
        else:
            options = {"path": str(world.into)} if words else {}
        for key, value in options.items():
            words += ["--source-options", f"{source}.{key}={value}"]
    return (*words, *(("--sink", str(world.out)) if world.kind.sink != "append" else ()))


class _Operator:
    def __init__(self, world: World, options: tuple[str, ...], story: Story, known: Story | None) -> None:
        self._world, self._options, self.story, self._known = world, options, story, known
        self._acted = 0
        self._said = ""  # warnings of the plans that were obeyed last
        self._reader: dict[str, str] = {}  # options of the reader, kept for one more batch

    def is_known(self) -> bool:
        """Whether the query is as it was when ckpt was asked otherwise, and ended without another question."""
        known, story = self._known, self.story
        return known is not None and (known.asks, story.asks, known.obeyed) == (1, 1, story.obeyed)

    def get_it_started(self, *, again: bool = False) -> None:
        """Start until a start succeeds, asking ckpt before it, unless it ran a moment ago. Raises Unfinished."""
        error, seen = "", list[tuple[str, ...]]()
        if again:
            error = self._start(self._reader, MORE)
            if not error:
                return
        for _ in range(MOST_ROUNDS):
            before = len(self.story.commands)
            self.story.asks += 1
            start = self._ask(error)
            done = tuple(self.story.commands[before:])
            if self.story.asks == 1:
                self.story.obeyed = f"{start} {_digest(self._world.checkpoint)}"
            if self.is_known() and not start:
                self.story.commands.append("start: as bare")
                return
            error = self._start(start)
            if not error and "noop" not in start:
                return
            if error and done in seen:
                outcome = Outcome.LOOP if any("--apply" in command for command in done) else Outcome.STUCK
                raise Unfinished(outcome, f"fails again: {_first_line(error)}")
            seen.append(done)
        if error:
            raise Unfinished(Outcome.STUCK, f"fails after {MOST_ROUNDS} rounds: {_first_line(error)}")

    def _ask(self, error: str) -> dict[str, Any]:
        """Obey to the end, and return how the query is to be started: arguments of `World.start`. Raises Unfinished."""
        if error:
            asked = self._options
            end, step = self._obey(error)
            if self._options == asked and (step is not None or end is not End.NOTHING):
                return self._read(end, step)
        return self._read(*self._obey(""))

    def _obey(self, error: str) -> tuple[End, Document | None]:
        try:
            options = () if error else self._options
            obeyed = obey(self._world.checkpoint, *options, error=error, without_copy=True)
        except AssertionError as refused:
            nothing_there = "does not exist: check the path" in str(refused)
            raise Unfinished(Outcome.PERSON if nothing_there else Outcome.STUCK, f"refused: {refused}") from refused
        except Exception as broken:
            frame = traceback.extract_tb(broken.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.name}"
            raise Unfinished(Outcome.TRACEBACK, f"{type(broken).__name__} in {where}: {broken}") from broken
        for words in obeyed.commands:
            shown = ("ckpt explain ERROR", *words[3:]) if words[1] == "explain" else words
            self.story.commands.append(self.plain(" ".join(shown)))
        self.story.announced.hear(obeyed.documents, obeyed.planned)
        warnings = [text for document in obeyed.documents for text in document.get("warnings", ())]
        in_sinks = [each["says"] for document in obeyed.documents for each in document.get("in_sinks", ())]
        self._said = " ".join((*warnings, *in_sinks))
        advice = " ".join(step["what"] for document in obeyed.documents for step in document["next"])
        if error and "--sink" in advice and not self._options and self._world.kind.sink != "append":
            self._options = ("--sink", str(self._world.out))
            self.story.commands.append("(looks into the sink)")
        if "poison" in error:
            self._skip(obeyed.documents)
        if obeyed.faults:
            raise Unfinished(Outcome.LOOP, obeyed.faults[0])
        return obeyed.end, obeyed.last

    def _skip(self, documents: list[Document]) -> None:
        """Leave out the batch of the row that makes each start fail, if a page names how."""
        steps = (step["command"] for document in documents for step in document["next"])
        words = next((command for command in steps if command and command[1] == "skip"), None)
        while words and "--apply" not in self.story.commands[-1]:
            document = run(*words[1:])
            self.story.commands.append(self.plain(" ".join(words)))
            self.story.announced.hear((document,), document["next"][:1] if "--apply" not in words else ())
            words = document["next"][0]["command"] if document["next"] else None

    def _read(self, end: End, step: Document | None) -> dict[str, Any]:
        """Return how a step says that the query is to be started. Raises Unfinished where it says something else."""
        if step is None:
            return {}
        if end is End.STOP:
            raise Unfinished(Outcome.STOP, step["what"])
        what = step["what"]
        if 'format("noop")' in what or "into noop" in what or (step["do"] == Do.FIND_OUT and "the batch" in what):
            conditional = re.search(r"(?i)if (the sink|it) has|whether the sink has", what)
            if conditional and self._options == () and self._world.kind.sink != "append":
                self._options = ("--sink", str(self._world.out))  # to know whether the sink has the batch
                self.story.commands.append("(looks into the sink)")
                return self._ask("")
            return {"noop": True}
        if self._act(step):
            return self._ask("")
        if what.startswith(_CHECKED) or (what.startswith(_WRITTEN) and not self._lacks_rows()):
            return {}
        if what.startswith(_IN_THIS_TABLE) and self._world.kind.sink in ("merge", "txn"):
            return {}  # it does, and does not write a batch twice
        forgets = step["do"] == Do.WAIT and self._world.kind.sink in ("append", "merge")
        back = step["do"] == Do.PUT_BACK
        if (back or _NOT_SO.search(what) or not _START.search(what)) and not forgets:
            raise Unfinished(Outcome.PERSON, what)
        self.story.announced.hear((), (step,))
        sentence = next(_SENTENCE.finditer(what), None)
        self._world.conf.update(_SETTING.findall(what))
        self._reader = dict(_OPTION.findall(sentence[0])) if sentence else {}
        return {**self._reader, "once": True} if "trigger(once" in what or "trigger once" in what else self._reader

    def _act(self, step: Document) -> bool:
        """Do what ckpt cannot, and somebody can who needs no copy of the checkpoint; False for anything else."""
        checkpoint, what = self._world.checkpoint, step["what"]
        if "--query-id ID" in what and not self._acted:
            query_id = json.loads((self._world.copies / "3" / "checkpoint" / "metadata").read_text())["id"]
            sink = self._options[-2:] if "--sink SINK" in self.plain(what) else ()
            words = ("repair", str(checkpoint), "--query-id", query_id, *sink, "--apply")
            document = run(*words)
            self.story.announced.hear((document,), ())
            self.story.commands.append(self.plain(f"ckpt {' '.join(words)}"))
        elif step["do"] == Do.MOVE and step["paths"] and (checkpoint / step["paths"][0]).exists():
            path = checkpoint / step["paths"][0]
            path.rename(self._world.folder / "moved-away")
            self.story.commands.append(f"(moves {step['paths'][0]} away)")
        elif step["do"] == Do.PUT_BACK or not self._change_sink(self._said if step["do"] == Do.WAIT else what):
            return False
        self._acted += 1
        return True

    def _change_sink(self, said: str) -> bool:
        """Do to the sink what lets it take batches again, as is said for sinks of its kind; False if nothing is."""
        sink = self._world.kind.sink
        if sink == "delta" and (restored := _RESTORED.search(said)):
            self._restore_table(restored[2], restored[1])
        elif sink == "txn" and (restored := _OTHER_APP.search(said)):
            self._world.restore_table(restored[1])
            self._world.app_id = f"orders-{self._acted}"
            self.story.commands.append(f"(restores the table to batch {restored[1]}, and writes with another txnAppId)")
        elif sink == "files" and (moved := _FROM_SINK.search(said)):
            for path in (self._world.out / "_spark_metadata").glob("[0-9]*"):
                if int(path.name.removesuffix(".compact")) >= int(moved[1]):
                    remove(path)
            self.story.commands.append(f"(moves _spark_metadata/{moved[1]} and above away)")
        else:
            return False
        return True

    def _restore_table(self, batch: str, command: str) -> None:
        """Take the table of the sink back to a batch, and start from a copy of the checkpoint that has a new id."""
        new = self._world.folder / "new"
        run(*command.replace("NEW", str(new)).split()[1:])
        self._world.restore_table(batch)
        self.story.commands.append(self.plain(f"(restores the table to batch {batch}) {command}"))
        self._world.checkpoint = new

    def _lacks_rows(self) -> bool:
        """Whether the sink lacks rows of the batches that had been written before the disaster."""
        older = [number for number in self._world.added if number < sum(SIZES[:BATCHES])]
        numbers = {number for _, ids, _ in self._world.rows() for number in ids}
        return not {*older} <= numbers if self._world.kind.operator in ("none", "aggregation", "transform") else False

    def _start(self, how: dict[str, Any], most: int = 2) -> str:
        words = "".join(f" {key}={value}" for key, value in how.items() if value)
        error = self._world.start(most, **how)
        self.story.commands.append(f"start{words}: {self.plain(_first_line(error)) if error else 'runs'}")
        return error

    def plain(self, text: str) -> str:
        """A text without this run's paths."""
        text = text.replace(str(self._world.checkpoint), "CP").replace(str(self._world.out), "SINK")
        text = text.replace(str(self._world.into), "SOURCE").replace(str(self._world.folder), "FOLDER")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
        text = re.sub(r"127\.0\.0\.1:\d+", "BROKER", re.sub(r"ckpt-backup-[\w.-]+|CP\.backup[\w.-]*", "BACKUP", text))
        return " ".join(text.split())


def _digest(folder: Path) -> str:
    """Names and contents of all files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    contents = (f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _first_line(error: object) -> str:
    """The end of a failure's text that names its cause, in one line."""
    text = " ".join(str(error).partition("=== Streaming Query ===")[0].partition("JVM stacktrace")[0].split())
    return text[:240]


def tries(world: World) -> Iterator[list[tuple[str, ...]]]:
    """Sequences of ckpt's commands that somebody may find without being told."""
    checkpoint = str(world.checkpoint)
    accepting = ("--accept-skip", "--accept-replay", "--apply")
    ways = ("tidy", "fill", "write-commit", "write-offsets", "run-again", "read-again", "plan-again")
    try:
        listed = {way["name"] for way in run("repair", checkpoint)["ways"] if way["refused"] is None}
    except Exception:
        listed = set()
    for way in ways:
        if way in listed:
            yield [("repair", checkpoint, "--choose", way, *accepting)]
    for batch in reversed(range(BATCHES)):
        for replay in ("same", "new"):
            yield [("rewind", checkpoint, "--to-batch", str(batch), "--replay", replay, *accepting)]
    yield [("skip", checkpoint, "--apply")]


def find_a_way(world: World, asked_at: Path) -> str:
    """Try commands that were not named, each on the query as it was when ckpt was asked; the first that ends well."""
    added, starts = [*world.added], 0
    for commands in tries(world):
        if starts == MOST_TRIES:
            break
        shutil.rmtree(world.folder)
        shutil.copytree(asked_at, world.folder)
        world.added = [*added]
        try:
            documents = [run(*words) for words in commands]
        except Exception:
            continue
        if not all(document.get("applied") for document in documents):
            continue
        starts += 1
        if world.start(2):
            continue
        world.add(2, closing=True)
        if world.start(MORE):
            continue
        story = Story()
        story.announced.lost |= {"accepted"} if any(document.get("skips") for document in documents) else set()
        story.announced.doubled |= {"accepted"} if any(document.get("replay") for document in documents) else set()
        _judge(world, story)
        if story.outcome in (Outcome.EXACT, Outcome.ANNOUNCED):
            text = "; ".join(f"ckpt {' '.join(words)}" for words in commands)
            return f"{text.replace(str(world.checkpoint), 'CP')}: {story.outcome}"
    return ""
