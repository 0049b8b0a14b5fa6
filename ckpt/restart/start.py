"""One start of a query, thought through: the checkpoint, a version, a mode, and what follows from them."""

from dataclasses import dataclass, replace
from functools import cached_property

from ckpt.advice import Advice
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import is_empty
from ckpt.checkpoint.sources.registry import SourceRange, indexed, source_ranges
from ckpt.model import Fault, OffsetLog, SourceOffset, Unreadable
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Diagnosis, Finding, Forecast, Outcome
from ckpt.texts import span
from ckpt.versions import Progress, Rules, Spark

_UNREAD = {Fault.TOO_LARGE: diagnoses.others.TOO_LARGE, Fault.REFUSED: diagnoses.others.READING_REFUSED}
MOST_BATCHES = 2**31 - 1  # between the first and the last of a log: Spark makes an array of them


@dataclass(frozen=True)
class Start:
    """One start that is thought through: the checkpoint, and what follows from version and mode."""

    checkpoint: Checkpoint
    spark: Spark
    progress: Progress
    deleted: tuple[int, ...] = ()  # planned batches whose offsets a start in real-time mode has deleted by now

    @property
    def rules(self) -> Rules:
        """How this version starts."""
        return self.spark.rules

    @property
    def latest(self) -> int | None:
        """The latest planned batch."""
        return self.checkpoint.offsets.latest

    @property
    def committed(self) -> int | None:
        """The latest committed batch."""
        return self.checkpoint.commits.latest

    @property
    def resumes(self) -> bool:
        """True if the latest planned batch is the latest committed one, so that a new batch comes next."""
        return self.latest is not None and self.latest == self.committed

    @property
    def takes_gaps(self) -> bool:
        """True if the latest batch may begin at the end of any earlier one (asynchronous tracking)."""
        of_real_time = self.progress is Progress.REALTIME and self.rules.real_time_state
        return self.progress is Progress.ASYNC or (of_real_time and not self.checkpoint.stateful)

    @cached_property
    def predecessor(self) -> int | None:
        """The batch whose offsets the latest one begins at, where this mode finds it."""
        if not self.latest:
            return None
        if self.takes_gaps:
            return self.checkpoint.offsets.before(self.latest)
        return self.latest - 1 if self.latest - 1 in self.checkpoint.offsets else None

    @property
    def begin(self) -> OffsetLog | None:
        """The offsets at which the latest planned batch begins, where they can be read."""
        return self.checkpoint.offsets.readable(self.predecessor)

    @property
    def end(self) -> OffsetLog | None:
        """The offsets of the latest planned batch, where they can be read."""
        return self.checkpoint.offsets.newest

    @cached_property
    def left_out(self) -> tuple[SourceOffset, ...]:
        """The offsets at the beginning of the latest batch of sources of which its end has none: offset log v2.

        ``OffsetMap.toStreamProgress`` goes by names, and so leaves such a source at the end of the batch before.
        """
        if self.begin is None or self.end is None or not self.end.names_sources:
            return ()
        there = {source.name for source in self.end.sources if source.text is not None}
        before = (replace(source, name=source.name or str(index)) for index, source in indexed(self.begin.sources))
        return tuple(source for source in before if source.text is not None and source.name not in there)

    def _fill_end(self) -> OffsetLog | None:
        """The end of the latest batch with a place for each source that it leaves out."""
        if self.end is None or not self.left_out:
            return self.end
        names = {source.name for source in self.left_out}
        others = (source for source in self.end.sources if source.name not in names)
        filled = self.left_out if self.resumes else (SourceOffset(name, None, None) for name in names)
        return replace(self.end, sources=(*others, *filled))

    @property
    def first_batch(self) -> int:
        """The batch that is run first."""
        if self.latest is None:
            return 0
        return self.latest + 1 if self.resumes else self.latest

    def _list_ranges(self) -> tuple[SourceRange, ...]:
        if self.latest is None or self.resumes:
            return source_ranges(self._fill_end(), None) if self.resumes else ()
        ranges = source_ranges(self.begin, self._fill_end())
        if self.predecessor is not None:
            return ranges
        initial = self.checkpoint.initial_offsets
        return tuple(replace(source, start=initial.get(source.index)) for source in ranges)

    @cached_property
    def never_run(self) -> tuple[int, ...]:
        """Planned batches between the latest commit and the latest batch, which no start comes back to.

        Spark before 2.1.1 had no commit log and planned a batch only when the one before was done (its offset files
        record no conf): there the absence of commits says nothing.
        """
        if self.latest is None or self.resumes:
            return ()
        if self.committed is None and self.end and self.end.metadata and not self.end.metadata.conf:
            return ()
        first = -1 if self.committed is None else self.committed
        return tuple(i for i in self.checkpoint.offsets.ids if first < i < self.latest)

    def ends(self, outcome: Outcome, *because: Finding, error: str | None = None) -> Forecast:
        """A forecast for this version and mode.

        A planned batch that never runs loses nothing if it had no rows. With state that says nothing: such a batch may
        advance the watermark, and emit what it closes.
        """
        never = self.never_run if outcome not in (Outcome.FAILS_AT_START, Outcome.REFUSED) else ()
        lost = tuple(i for i in never if self.checkpoint.stateful or not is_empty(self.checkpoint, i))
        if lost:
            first, which = lost[0], span("batch", lost[0], lost[-1])
            committed = f"the latest commit is {self.committed}" if self.committed is not None else "there is no commit"
            were = "was" if len(lost) == 1 else "were"
            detail = f"{which} {were} planned, {committed}, and the next start runs only batch {self.latest}"
            advice = BOOK.advise("read_never_run" if self.checkpoint.commits.ids else "put_back_commits", which=which)
            because = (*because, Finding(diagnoses.logs.COMMITS_BEHIND, f"{OFFSETS}/{first}", detail, advice))
        forecast = Forecast(
            self.spark, self.progress, outcome, error=error, never_run=never, lost=lost, because=because
        )
        if outcome in (Outcome.FAILS_AT_START, Outcome.REFUSED, Outcome.UNKNOWN):
            return forecast
        again = self.first_batch in self.deleted or (self.latest is not None and not self.resumes)
        return replace(forecast, batch_id=self.first_batch, reexecutes=again, sources=self._list_ranges())

    def fails(
        self, diagnosis: Diagnosis, path: str, detail: str, error: str | None, advice: Advice | None = None
    ) -> Forecast:
        """A failure before any batch is executed."""
        return self.ends(Outcome.FAILS_AT_START, Finding(diagnosis, path, detail, advice), error=error)

    def doubts(self, path: str, entry: object) -> Forecast | None:
        """An outcome that ckpt cannot foresee, because it did not read a file that the start opens."""
        if not isinstance(entry, Unreadable) or entry.fault not in _UNREAD:
            return None
        return self.stays_unknown(_UNREAD[entry.fault], path, entry.reason)

    def stays_unknown(self, diagnosis: Diagnosis, path: str, detail: str, advice: Advice | None = None) -> Forecast:
        """An outcome that ckpt cannot foresee."""
        return self.ends(Outcome.UNKNOWN, Finding(diagnosis, path, detail, advice))
