"""What a start makes of the Iceberg table that a source has now (``ckpt.live``): the rules, as measured.

Iceberg is a source of Spark's second kind: a start asks it for what comes after the latest committed batch only. It
looks for the snapshot where that ended (``SparkMicroBatchStream``, ``SyncSparkMicroBatchPlanner``), and then goes from
each snapshot to its child, up to the current one. A batch that was planned is walked through again from its beginning.
A start with trigger availableNow walks through the table from where the query began before it does anything else.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.live.iceberg.unread import count_of, rest, total
from ckpt.live.outlook import NOT_IN_LOG, SourceOutlook, Trouble, judged, waiting_said
from ckpt.live.records import IcebergNow, IcebergOption, LiveSource, SnapshotNow
from ckpt.restart import diagnoses, messages
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.texts import plural, plural_of, quoted

_OPTIONS = {"overwrite": IcebergOption.SKIPS_OVERWRITES, "delete": IcebergOption.SKIPS_DELETES}
"""What lets a start pass a snapshot that is no append; a replace (compaction) it passes anyway."""
_NO_POSITION = 2**31 - 1
_USUAL = "Start the query as usual."


def iceberg_outlook(start: Forecast, source: LiveSource, reading: SourceRange, now: IcebergNow) -> SourceOutlook:
    """One Iceberg source and the next start; pure."""
    planned = reading.end is not None
    end = decode(reading.end if planned else reading.start)
    begin = decode(now.first if reading.start is None else reading.start) if planned else end
    if not isinstance(end, IcebergOffset) or not isinstance(begin, IcebergOffset):
        return SourceOutlook(source, said=NOT_IN_LOG)
    if now.in_future:
        return SourceOutlook(source, said="the table is older than stream-from-timestamp: what a start does is unknown")
    judge = _Judge(start.batch_id, reading.index, now, begin, end, planned=planned)
    seen = judged(source, reading.index, list(judge.troubles()), judge.said())
    return replace(seen, waiting=judge.waiting, rows=judge.rows)


class _Judge:
    """One table, and one start."""

    def __init__(
        self, batch: int | None, index: int, now: IcebergNow, begin: IcebergOffset, end: IcebergOffset, *, planned: bool
    ) -> None:
        self._batch, self._index, self._now, self._planned = batch, index, now, planned
        self._at = {one.id: number for number, one in enumerate(now.chain)}
        self._begin, self._end = self._resolved(begin), self._resolved(end)

    def _resolved(self, offset: IcebergOffset) -> IcebergOffset:
        """``MicroBatchUtils.determineStartingOffset``: without a snapshot it is the oldest that is there."""
        if offset.snapshot is not None or not self._now.chain:
            return offset
        return IcebergOffset(self._now.chain[0].id, 0, all_files=False)

    @property
    def reaches(self) -> bool:
        """Whether what waits can be told: where the query stands is an ancestor of the current snapshot."""
        return self._begin.snapshot in self._at and self._end.snapshot in self._at

    @property
    def _parts(self) -> list[tuple[SnapshotNow, int | None, int | None]]:
        """What a start reads, or would read but for snapshots that stop it: snapshots, their files and rows."""
        first = self._begin if self._planned else self._end
        number = self._at[first.snapshot or 0]
        found = [rest(self._now.chain[number], first)]
        found += [(one, one.files, one.rows) for one in self._now.chain[number + 1 :] if one.operation == "append"]
        return found

    @property
    def waiting(self) -> int | None:
        """Files that are still to be read."""
        return total([files for _, files, _ in self._parts]) if self.reaches else None

    @property
    def rows(self) -> int | None:
        """The rows in them."""
        return total([rows for _, _, rows in self._parts]) if self.reaches else None

    def said(self) -> str:
        """One sentence without a full stop."""
        count = len(self._now.chain)
        if not count:
            return "the table has no snapshot: the next start reads whatever comes into it"
        has = f"the table has {plural(count, 'snapshot')} up to {self._now.chain[-1].id}"
        return waiting_said(has, self.waiting, self.rows)

    def troubles(self) -> Iterator[Trouble]:
        """In the order in which a start comes to them."""
        stopped = False
        if self._now.chain or self._planned:
            for one in (*self._of_batch(), *self._after()):
                yield one
                stopped = stopped or not one.runs
                if stopped:
                    break
        yield from self._from_the_beginning()

    def _of_batch(self) -> Iterator[Trouble]:
        """A batch that was planned (``planFiles``)."""
        if not self._planned or self._end.snapshot is None:
            return
        at = self._begin.snapshot
        while True:
            missing = self._missing(at, in_batch=True)
            if missing is not None:
                yield missing
                return
            number = self._at.get(at or 0)
            if number is not None and self._barred(self._now.chain[number]):
                yield self._changed(number, Outcome.FAILS_IN_BATCH)
                return
            if at == self._end.snapshot:
                return
            if number is None or number + 1 == len(self._now.chain):
                yield self._rolled_back(in_batch=True)
                return
            at = self._now.chain[number + 1].id

    def _after(self) -> Iterator[Trouble]:
        """What comes after the latest batch (``latestOffset``)."""
        if self._end.snapshot is None:
            return
        missing = self._missing(self._end.snapshot, in_batch=False)
        if missing is not None:
            yield missing
            return
        if self._end.snapshot not in self._at:
            yield self._rolled_back(in_batch=False)
            return
        number = self._at[self._end.snapshot]
        here = self._now.chain[number]
        _, files, rows = rest(here, self._end)
        read_files, read_rows, reads_here = files or 0, rows or 0, files != 0
        for later, one in enumerate(self._now.chain[number + 1 :], number + 1):
            if self._barred(one):
                full = read_files > self._now.most_files or read_rows >= self._now.most_rows
                yield self._changed(later, Outcome.FAILS_AT_START, later=self._planned or full)
                return
            if one.operation == "append":
                read_files, read_rows, reads_here = read_files + (one.files or 0), read_rows + (one.rows or 0), True
        if reads_here and self._barred(here):
            yield self._changed(number, Outcome.FAILS_IN_BATCH, later=self._planned)
            return
        yield from self._left_out(number)

    def _barred(self, snapshot: SnapshotNow) -> bool:
        """Whether a start fails at a snapshot (``shouldProcess``)."""
        if snapshot.operation in ("append", "replace"):
            return False
        return _OPTIONS.get(snapshot.operation or "") not in self._now.options

    def _missing(self, snapshot: int | None, *, in_batch: bool) -> Trouble | None:
        if snapshot in self._at or snapshot in self._now.branched:
            return None
        error = messages.ICEBERG_SNAPSHOT_GONE
        outcome = Outcome.FAILS_IN_BATCH if in_batch else Outcome.FAILS_AT_START
        later = self._planned and not in_batch
        if self._now.younger and self._now.cut_after is None:
            detail = f"it has no snapshot {snapshot}, and none that is older than the latest batch"
            remedy = (
                "Check the option path: is it the table that the query reads? If so, it was created again. "
                f"{self._moved(0)} What the sink has of the old table stays there."
            )
            return Trouble(diagnoses.sources.ICEBERG_OTHER_TABLE, detail, remedy, outcome, error, later=later)
        detail = f"it no longer has snapshot {snapshot}, where {'batch' if in_batch else 'the latest batch'} "
        detail += f"{self._batch} begins" if in_batch else "ended"
        remedy = f"{self._gap(snapshot)}{self._moved(0)}"
        return Trouble(diagnoses.sources.ICEBERG_SNAPSHOT_EXPIRED, detail, remedy, outcome, error, later=later)

    def _gap(self, snapshot: int | None) -> str:
        if self._now.cut_after == snapshot:
            return (
                "Nothing that was not read is missing, unless a batch ended inside that snapshot (it does with a limit "
                "of files or rows for a batch): then the rest of it is left out. "
            )
        return (
            "What the snapshots added that have expired since then can no longer be told, and is left out; these rows "
            "are still in the table, unless they were deleted: a batch query can read them. "
        )

    def _moved(self, number: int) -> str:
        """The commands that let the query continue at a snapshot of the chain, at or after the one with this number."""
        if not self._now.chain:
            return "Start the query with a new checkpoint: state begins empty."
        chain = self._now.chain
        fitting = next(
            (one for one in range(number, len(chain)) if chain[one].operation in ("append", "replace")), None
        )
        passed = [one for one in chain[number:fitting] if one.files]
        left = f"What snapshots add that change rows ({count_of(passed)}) is left out: a batch query can read it. "
        if fitting is None:
            return (
                f"{left if passed else ''}No snapshot that is left only appends rows, and a query cannot begin at "
                "another: once rows were appended, ask again."
            )
        return (left if passed else "") + self._set(chain[fitting], 0, again=self._end.snapshot in self._at)

    def _set(self, snapshot: SnapshotNow, position: int, *, again: bool) -> str:
        value = {"version": 1, "snapshot_id": snapshot.id, "position": position, "scan_all_files": False}
        to = quoted(json.dumps(value, separators=(",", ":")))
        command = f"`ckpt offsets set {{checkpoint}} --source {self._index} --to {to}`"
        if not self._planned:
            return f"{command} shows the plan to continue at snapshot {snapshot.id}. Apply it. {_USUAL}"
        skip = f"`ckpt skip {{checkpoint}}` leaves out batch {self._batch}, which cannot be planned again."
        if again:
            return f"{skip} If the sink does not have its rows, {command} then lets the next batch read them. {_USUAL}"
        return f"{skip} Then {command} lets the query continue at snapshot {snapshot.id}. {_USUAL}"

    def _rolled_back(self, *, in_batch: bool) -> Trouble:
        snapshot = self._end.snapshot or 0
        error = messages.iceberg_rolled_back(cut=self._now.cut_after is not None, in_batch=in_batch)
        detail = f"snapshot {snapshot}, which the query has read, is no ancestor of the current one"
        base = self._now.branched.get(snapshot)
        kept = "What the query had read of snapshots that are no longer part of the table stays in the sink. "
        number = -1 if base is None else self._at[base]
        there = None if base is None else self._now.chain[number]
        if there is not None and there.operation in ("append", "replace"):
            remedy = kept + self._set(there, _NO_POSITION if there.files is None else there.files, again=False)
        else:
            remedy = kept + self._moved(number + 1)
        outcome = Outcome.FAILS_IN_BATCH if in_batch else Outcome.FAILS_AT_START
        later = self._planned and not in_batch
        return Trouble(diagnoses.sources.ICEBERG_ROLLED_BACK, detail, remedy, outcome, error, later=later)

    def _changed(self, number: int, outcome: Outcome, *, later: bool = False) -> Trouble:
        barring = [one for one in self._now.chain[number:] if self._barred(one)]
        here = barring[0]
        known = [option for name, option in _OPTIONS.items() if any(one.operation == name for one in barring)]
        added = [one for one in barring if one.files]
        if here.operation not in _OPTIONS:
            detail = f"snapshot {here.id} does not say what it did"
            remedy = "No option passes it. Start the query with a new checkpoint: state begins empty."
            return Trouble(diagnoses.sources.ICEBERG_ROWS_CHANGED, detail, remedy, outcome, None, later=later)
        adds = f", and adds {count_of([here])}" if here.files else ""
        detail = f"snapshot {here.id} is an {here.operation}{adds}".replace("an delete", "a delete")
        options = " and ".join(f"{one}=true" for one in known)
        word = plural_of(len(known), "option")
        leaves = (
            f"it leaves out what such snapshots add ({count_of(added)}), also rows that are new"
            if added
            else "no row that waits is left out"
        )
        remedy = (
            f"Start the query with the {word} {options}, until it has read a snapshot after these; with trigger "
            f"availableNow keep the {word}, because each start looks at every snapshot since the query began: "
            f"{leaves}. What the sink has of rows that were deleted or changed stays there."
        )
        error = f"Cannot process {here.operation} snapshot"
        return Trouble(diagnoses.sources.ICEBERG_ROWS_CHANGED, detail, remedy, outcome, error, later=later)

    def _left_out(self, number: int) -> Iterator[Trouble]:
        """What the options leave out."""
        skipped = [one for one in self._now.chain[number + 1 :] if one.operation in _OPTIONS and one.files]
        if skipped:
            which = plural(len(skipped), "snapshot")
            detail = f"the options leave out {count_of(skipped)} of {which} that change rows"
            yield Trouble(diagnoses.sources.ICEBERG_LEAVES_OUT, detail, None, runs=True, skips=True)

    def _from_the_beginning(self) -> Iterator[Trouble]:
        """What stops a start with trigger availableNow, which looks at the first offset of the query."""
        first = decode(self._now.first)
        if not isinstance(first, IcebergOffset) or first.snapshot is None or not self._now.chain:
            return
        between = self._now.chain[self._at.get(first.snapshot, 0) + 1 : self._at.get(self._end.snapshot or 0, 0) + 1]
        barring = [one for one in between if self._barred(one)]
        options = " and ".join(
            sorted({f"{_OPTIONS[one.operation or '']}=true" for one in barring if one.operation in _OPTIONS})
        )
        kept = f"start it with {options}, which is then to be kept" if options else ""
        file = f"sources/{self._index}/offsets"
        if first.snapshot not in self._at:
            detail = f"snapshot {first.snapshot}, which {file}/0 names, is no longer there"
            remedy = (
                f"Start the query with another trigger. Or delete {file}/0 and {file}/.0.crc of the checkpoint"
                f"{f', and {kept}' if kept else ''}: Iceberg writes the file again, with the oldest snapshot that is "
                "there, and no batch but batch 0 needs it."
            )
            yield Trouble(diagnoses.sources.ICEBERG_BEGINNING_GONE, detail, remedy, runs=True)
        elif barring:
            detail = f"snapshot {barring[0].id}, since then, is no append"
            remedy = f"Start the query with another trigger{f', or {kept}' if kept else ''}."
            yield Trouble(diagnoses.sources.ICEBERG_BEGINNING_GONE, detail, remedy, runs=True)
