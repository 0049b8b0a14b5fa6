"""Rules for a start at the Iceberg table that a source has now, as measured.

Iceberg is a source of Spark's second kind: a start asks it for what comes after the latest committed batch only. It
looks for the snapshot where that ended (``SparkMicroBatchStream``, ``SyncSparkMicroBatchPlanner``), and then goes from
each snapshot to its child, up to the current one. A batch that was planned is walked through again from its beginning.
A start with trigger availableNow walks through the table from where the query began before it does anything else.
"""

from collections.abc import Iterable, Iterator, Sequence

from ckpt.advice import Advice, Setting, Words, join
from ckpt.checkpoint.sources.iceberg import IcebergOffset, write_offset
from ckpt.formats.iceberg import IcebergSnapshot
from ckpt.live.book import BOOK
from ckpt.live.kind import NextRead
from ckpt.live.outlook import NOT_IN_LOG, SourceOutlook, Trouble, move_end
from ckpt.live.records import IcebergNow, IcebergOption
from ckpt.live.tables import UNKNOWN, Counts, add_waiting, describe_counts, judge_table
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Diagnosis, Outcome
from ckpt.texts import plural, plural_of

_OPTIONS = {"overwrite": IcebergOption.SKIPS_OVERWRITES, "delete": IcebergOption.SKIPS_DELETES}
"""Reader options with which a start passes over a snapshot that appends nothing; a compaction it passes anyway."""
APPENDS = ("append", "replace")
"""Operations of snapshots at which no start fails: a compaction is passed over."""
_NO_POSITION = 2**31 - 1


def end_of(snapshot: IcebergSnapshot) -> IcebergOffset:
    """Return the offset after the last file of a snapshot."""
    return IcebergOffset(
        snapshot.id, _NO_POSITION if snapshot.added_files is None else snapshot.added_files, all_files=False
    )


def foresee_iceberg(start: NextRead, now: IcebergNow) -> SourceOutlook:
    """Foresee what the next start makes of an Iceberg source; pure."""
    begin = start.range.start_offset
    end = begin if start.range.end is None else start.range.end_offset
    if begin is None and end is not None:
        begin = now.first
    if not isinstance(end, IcebergOffset) or not isinstance(begin, IcebergOffset):
        return SourceOutlook(start.source, said=NOT_IN_LOG)
    if now.in_future:
        reason = "the table is older than stream-from-timestamp: the outcome of a start is unknown"
        return SourceOutlook(start.source, said=reason)
    judge = _Judge(start, now, begin, end)
    unread, has = judge.count_unread(), "the table has no snapshot: the next start reads whatever is added to it"
    if now.chain:
        has = add_waiting(f"the table has {plural(len(now.chain), 'snapshot')} up to {now.chain[-1].id}", unread)
    return judge_table(start, judge.find_troubles(), has, unread)


def resolve(now: IcebergNow, offset: IcebergOffset) -> IcebergOffset:
    """Name the snapshot of an offset without one, the oldest (``MicroBatchUtils.determineStartingOffset``)."""
    if offset.snapshot is not None or not now.chain:
        return offset
    return IcebergOffset(now.chain[0].id, 0, all_files=False)


def count_after(now: IcebergNow, offset: IcebergOffset) -> Sequence[Counts]:
    """Count what a query that ended at an offset has still to read."""
    number = next((number for number, each in enumerate(now.chain) if each.id == offset.snapshot), None)
    if number is None:
        return [UNKNOWN]
    appends = [snapshot for snapshot in now.chain[number + 1 :] if snapshot.operation == "append"]
    return [_count_rest(now.chain[number], offset), *map(_count, appends)]


def bars(now: IcebergNow, snapshot: IcebergSnapshot) -> bool:
    """Tell whether a start fails at a snapshot (``shouldProcess``)."""
    return snapshot.operation not in APPENDS and _OPTIONS.get(snapshot.operation or "") not in now.options


def name_option(snapshot: IcebergSnapshot) -> Words | str:
    """Name the option with which a start passes over a snapshot that it would fail at; "" where there is none."""
    option = _OPTIONS.get(snapshot.operation or "")
    return "" if option is None else _name_options([option])


class _Judge:
    def __init__(self, start: NextRead, now: IcebergNow, begin: IcebergOffset, end: IcebergOffset) -> None:
        self._now, self._index = now, start.range.index
        self._folder = start.source.folder
        self._batch, self._planned = start.forecast.batch_id, start.range.end is not None
        self._at = {snapshot.id: number for number, snapshot in enumerate(now.chain)}
        self._begin, self._end = resolve(now, begin), resolve(now, end)

    def count_unread(self) -> Sequence[Counts]:
        return count_after(self._now, self._begin) if self._end.snapshot in self._at else [UNKNOWN]

    def find_troubles(self) -> Iterator[Trouble]:
        if self._now.chain or self._planned:
            trouble = self._walk_batch() or self._walk_on()
            if trouble is not None:
                yield trouble
        yield from self._walk_from_the_beginning()

    def _walk_batch(self) -> Trouble | None:
        """Go through a batch that was planned (``planFiles``)."""
        if not self._planned or self._end.snapshot is None:
            return None
        at = self._begin.snapshot
        while True:
            if self._is_missing(at):
                return self._explain_missing(at, in_batch=True)
            number = self._at.get(at or 0)
            if number is not None and bars(self._now, self._now.chain[number]):
                return self._explain_change(number, Outcome.FAILS_IN_BATCH)
            if at == self._end.snapshot:
                return None
            if number is None or number + 1 == len(self._now.chain):
                return self._explain_rollback(in_batch=True)
            at = self._now.chain[number + 1].id

    def _walk_on(self) -> Trouble | None:
        """Go on after the latest batch (``latestOffset``)."""
        if self._end.snapshot is None:
            return None
        if self._is_missing(self._end.snapshot):
            return self._explain_missing(self._end.snapshot, in_batch=False)
        if self._end.snapshot not in self._at:
            return self._explain_rollback(in_batch=False)
        number = self._at[self._end.snapshot]
        here = self._now.chain[number]
        files, rows = _count_rest(here, self._end)
        read_files, read_rows, reads_here = files or 0, rows or 0, files != 0
        for later, snapshot in enumerate(self._now.chain[number + 1 :], number + 1):
            if bars(self._now, snapshot):
                full = read_files > self._now.most_files or read_rows >= self._now.most_rows
                return self._explain_change(later, Outcome.FAILS_AT_START, later=self._planned or full)
            if snapshot.operation == "append":
                read_files, read_rows = read_files + (snapshot.added_files or 0), read_rows + (snapshot.added_rows or 0)
                reads_here = True
        if reads_here and bars(self._now, here):
            return self._explain_change(number, Outcome.FAILS_IN_BATCH, later=self._planned)
        return self._find_left_out(number)

    def _is_missing(self, snapshot: int | None) -> bool:
        return snapshot not in self._at and snapshot not in self._now.branched

    def _build_trouble(
        self, diagnosis: Diagnosis, detail: str, advice: Advice, error: str, *, in_batch: bool
    ) -> Trouble:
        """Build a trouble that stops the planned batch, or the planning of the next one."""
        outcome = Outcome.FAILS_IN_BATCH if in_batch else Outcome.FAILS_AT_START
        return Trouble(diagnosis, detail, advice, outcome, error, later=self._planned and not in_batch)

    def _explain_missing(self, snapshot: int | None, *, in_batch: bool) -> Trouble:
        error = messages.ICEBERG_SNAPSHOT_GONE
        if self._now.younger and self._now.cut_after is None:
            detail = f"it has no snapshot {snapshot}, and none older than the latest batch"
            advice = self._move_on(BOOK.text("iceberg_check_path"), 0)
            return self._build_trouble(diagnoses.sources.ICEBERG_OTHER_TABLE, detail, advice, error, in_batch=in_batch)
        detail = f"it no longer has snapshot {snapshot}, where {'batch' if in_batch else 'the latest batch'} "
        detail += f"{self._batch} begins" if in_batch else "ended"
        whole = self._now.cut_after == snapshot
        advice = self._move_on(BOOK.text("iceberg_nothing_missing" if whole else "iceberg_gap"), 0)
        return self._build_trouble(diagnoses.sources.ICEBERG_SNAPSHOT_EXPIRED, detail, advice, error, in_batch=in_batch)

    def _move_on(self, lead: Words, number: int) -> Advice:
        """Advise how the query continues at a snapshot of the chain, at or after the one with this number."""
        chain = self._now.chain
        if not chain:
            return BOOK.advise("iceberg_anew", lead=lead)
        fitting = next((at for at in range(number, len(chain)) if chain[at].operation in APPENDS), None)
        passed = [snapshot for snapshot in chain[number:fitting] if snapshot.added_files]
        if passed:
            lead = join((lead, BOOK.text("iceberg_changes_left_out", count=count_files(passed))))
        if fitting is None:
            return BOOK.advise("iceberg_wait", lead=lead)
        to = IcebergOffset(chain[fitting].id, 0, all_files=False)
        return self._move_to(lead, to, again=self._end.snapshot in self._at)

    def _move_to(self, lead: Words, to: IcebergOffset, *, again: bool) -> Advice:
        name = "iceberg_move"
        if self._planned:
            name = "iceberg_skip_and_read_again" if again else "iceberg_skip_and_move"
        move = move_end(self._index, write_offset(to))
        return BOOK.advise(name, lead=lead, batch=self._batch, snapshot=to.snapshot, **move)

    def _explain_rollback(self, *, in_batch: bool) -> Trouble:
        snapshot = self._end.snapshot or 0
        error = messages.iceberg_rolled_back(cut=self._now.cut_after is not None, in_batch=in_batch)
        detail = f"snapshot {snapshot}, which the query has read, is not an ancestor of the current one"
        base = self._now.branched.get(snapshot)
        kept = BOOK.text("iceberg_kept")
        number = -1 if base is None else self._at[base]
        there = None if base is None else self._now.chain[number]
        if there is not None and there.operation in APPENDS:
            advice = self._move_to(kept, end_of(there), again=False)
        else:
            advice = self._move_on(kept, number + 1)
        return self._build_trouble(diagnoses.sources.ICEBERG_ROLLED_BACK, detail, advice, error, in_batch=in_batch)

    def _explain_change(self, number: int, outcome: Outcome, *, later: bool = False) -> Trouble:
        barring = [snapshot for snapshot in self._now.chain[number:] if bars(self._now, snapshot)]
        here, operations = barring[0], {snapshot.operation for snapshot in barring}
        known = [option for name, option in _OPTIONS.items() if name in operations]
        added = [snapshot for snapshot in barring if snapshot.added_files]
        if here.operation not in _OPTIONS:
            detail = f"snapshot {here.id} does not record its operation"
            advice = BOOK.advise("iceberg_unnamed_change")
            return Trouble(diagnoses.sources.ICEBERG_ROWS_CHANGED, detail, advice, outcome, None, later=later)
        adds = f", and adds {count_files([here])}" if here.added_files else ""
        detail = f"snapshot {here.id} is an {here.operation}{adds}".replace("an delete", "a delete")
        name = "iceberg_added_left_out" if added else "iceberg_nothing_left_out"
        leaves, word = BOOK.text(name, count=count_files(added)), plural_of(len(known), "option")
        advice = BOOK.advise("iceberg_pass_changes", word=word, options=_name_options(known), leaves=leaves)
        error = f"Cannot process {here.operation} snapshot"
        return Trouble(diagnoses.sources.ICEBERG_ROWS_CHANGED, detail, advice, outcome, error, later=later)

    def _find_left_out(self, number: int) -> Trouble | None:
        later = self._now.chain[number + 1 :]
        skipped = [snapshot for snapshot in later if snapshot.operation in _OPTIONS and snapshot.added_files]
        if not skipped:
            return None
        detail = f"the options skip {count_files(skipped)} of {plural(len(skipped), 'snapshot')} that change rows"
        return Trouble(diagnoses.sources.ICEBERG_LEAVES_OUT, detail, None, runs=True, skips=True)

    def _walk_from_the_beginning(self) -> Iterator[Trouble]:
        """Go through the table from the first offset of the query, as a start with trigger availableNow does."""
        first = self._now.first
        if first is None or first.snapshot is None or not self._now.chain:
            return
        between = self._now.chain[self._at.get(first.snapshot, 0) + 1 : self._at.get(self._end.snapshot or 0, 0) + 1]
        barring = [snapshot for snapshot in between if bars(self._now, snapshot)]
        if first.snapshot in self._at and not barring:
            return
        names = {snapshot.operation for snapshot in barring}
        options = _name_options(sorted(option for name, option in _OPTIONS.items() if name in names))
        log = f"{self._folder}/offsets"
        if first.snapshot in self._at:
            detail = f"snapshot {barring[0].id}, since then, is not an append"
            name = "iceberg_trigger_or_options" if options else "iceberg_another_trigger"
        else:
            detail = f"snapshot {first.snapshot}, which {log}/0 names, no longer exists"
            name = "iceberg_trigger_or_delete"
        kept = BOOK.text("iceberg_and_with_options", options=options) if options else ""
        advice = BOOK.advise(name, options=options, file=f"{log}/0", crc=f"{log}/.0.crc", kept=kept)
        yield Trouble(diagnoses.sources.ICEBERG_BEGINNING_GONE, detail, advice, runs=True)


def _name_options(options: Iterable[IcebergOption]) -> Words:
    return join((Words((Setting(f"{option}=true"),)) for option in options), " and ")


def _count(snapshot: IcebergSnapshot) -> Counts:
    return snapshot.added_files, snapshot.added_rows


def count_files(snapshots: Iterable[IcebergSnapshot]) -> str:
    """Say how many files snapshots added, and how many rows they have if that is known."""
    return describe_counts(map(_count, snapshots))


def _count_rest(snapshot: IcebergSnapshot, offset: IcebergOffset) -> Counts:
    """Count what is left of a snapshot after an offset in it: of all files of the table it cannot be told."""
    if snapshot.operation == "replace":
        return 0, 0
    if offset.all_files or snapshot.added_files is None:
        return None, None
    files = max(snapshot.added_files - offset.position, 0)
    return files, snapshot.added_rows if files == snapshot.added_files else 0 if files == 0 else None
