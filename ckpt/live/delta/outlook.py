"""Rules for a start at the Delta table that a source has now, as measured.

Delta is a source of Spark's first kind: a start asks it once more for the range of the latest batch, so that the log
has to reach back to where that batch began. Then it plans the next batch, over all versions as far as a batch goes; a
version that changes rows fails there, before anything is written. Files are opened when the batch runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ckpt.advice import Advice, Setting
from ckpt.checkpoint.sources.delta import DeltaOffset, write_offset
from ckpt.live.book import BOOK
from ckpt.live.kind import NextRead
from ckpt.live.outlook import NOT_IN_LOG, SourceOutlook, Trouble, move_end
from ckpt.live.records import DeltaNow, DeltaOption, FileNow, VersionNow
from ckpt.live.tables import UNKNOWN, add_waiting, describe_counts, judge_table
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Outcome
from ckpt.texts import plural_of, span

_VersionFiles = tuple[VersionNow, Sequence[FileNow]]
"""A version, and those of its files that are meant."""


def foresee_delta(start: NextRead, now: DeltaNow) -> SourceOutlook:
    """Foresee what the next start makes of a Delta source; pure."""
    offset = start.range.start_offset
    before, end = (now.before, offset) if start.range.end is None else (offset, start.range.end_offset)
    if not isinstance(end, DeltaOffset):
        return SourceOutlook(start.source, said=NOT_IN_LOG)
    has = f"the table has versions {now.first} to {now.latest}"
    if now.table_id != end.table_id:
        detail = f"it has the id {now.table_id}, but the query has read {end.table_id}"
        error = messages.OTHER_DELTA_TABLE
        trouble = Trouble(diagnoses.sources.DELTA_OTHER_TABLE, detail, BOOK.advise("delta_other_table"), error=error)
        return judge_table(start, [trouble], f"{has}, and another id", [UNKNOWN])
    judge = _Judge(start, now, before if isinstance(before, DeltaOffset) else None, end)
    known = judge.knows_unread()
    unread = [(1, file.rows) for file in judge.unread] if known else [UNKNOWN]
    lost = sum(file.there is False for file in judge.unread) if known else None
    return judge_table(start, judge.find_troubles(), add_waiting(has, unread), unread, lost)


class _Judge:
    def __init__(self, start: NextRead, now: DeltaNow, before: DeltaOffset | None, end: DeltaOffset) -> None:
        self._now, self._before, self._end, self._index = now, before, end, start.range.index
        self._batch, self._planned = start.forecast.batch_id, start.range.end is not None
        self._rules = start.forecast.spark.rules
        self._needs_snapshot = before is None or before.initial_snapshot
        self._reads_batch = self._planned and not start.passed
        self._of_batch = _list_batch(now, before, end) if self._reads_batch else []
        self._new = _list_after(now, end)
        skips = DeltaOption.SKIPS_CHANGES in now.options
        new = [file for version, files in self._new for file in files if not (skips and version.takes_rows)]
        self.unread = [*self._of_batch, *new]

    def knows_unread(self) -> bool:
        end, now = self._end, self._now
        needs_snapshot = end.initial_snapshot or (self._planned and self._needs_snapshot)
        reaches = end.initial_snapshot or now.first <= end.version
        return reaches and now.latest >= end.last_read and (now.snapshot is not None or not needs_snapshot)

    def find_troubles(self) -> Iterator[Trouble]:
        hidden = self._find_hidden_log()
        if hidden is not None:
            yield hidden
            if not hidden.runs:
                return
        yield from self._compare_columns()
        yield from self._find_changes()
        yield from self._find_missing_files()
        if (version := self._now.rewritten) is not None:
            detail = f"version {version} was written after the batch that has read it was planned"
            move = {} if self._planned else self._move_back(version)
            advice = BOOK.advise("delta_rewritten_move" if move else "delta_rewritten", version=version, **move)
            yield Trouble(diagnoses.sources.DELTA_LOOKS_REWRITTEN, detail, advice, runs=True)

    def _find_hidden_log(self) -> Trouble | None:
        """Find versions that a start goes back to, and that are not there."""
        now, first = self._now, self._now.first
        if now.latest < self._end.last_read:
            return self._explain_older_table()
        if self._needs_snapshot:
            return self._explain_no_snapshot() if not now.begins_readable else None
        assert self._before is not None
        if first <= self._before.version:
            return None
        return self._explain_cleaned_log(self._before.version)

    def _explain_older_table(self) -> Trouble:
        now = self._now
        detail = f"it ends at version {now.latest}, but the query has read up to version {self._end.last_read}"
        move = self._move_back(now.latest + 1)
        name = "delta_older_anew" if now.fitting_batch is None else "delta_older_rewind"
        if move:
            name = "delta_older_skip_and_move" if self._planned else "delta_older_move"
        advice = BOOK.advise(name, batch=self._batch, fitting=now.fitting_batch, **move)
        runs = not self._rules.delta_sees_missing_versions
        error = messages.DELTA_VERSIONS_MISSING
        return Trouble(diagnoses.sources.DELTA_OLDER_TABLE, detail, advice, error=error, runs=runs, skips=runs)

    def _explain_no_snapshot(self) -> Trouble:
        began = self._before.version if self._before else self._end.last_read
        detail = f"its log cannot rebuild the table as of version {began}, with which the query began"
        if self._before is not None or self._planned or self._end.initial_snapshot:
            advice = BOOK.advise("delta_rest_of_first_table")
        else:
            at = max(self._end.version, self._now.first)
            advice = self._advise_gap(self._end.version, at, Setting(f"startingVersion={at}"))
        return Trouble(diagnoses.sources.DELTA_LOG_CLEANED, detail, advice, error=messages.NO_DELTA_SNAPSHOT)

    def _explain_cleaned_log(self, begin: int) -> Trouble | None:
        first, end = self._now.first, self._end.version
        detail = f"its log begins at version {first}, but a start goes back to version {begin}"
        loses, beyond = DeltaOption.LOSES in self._now.options, first > end
        since = begin if self._reads_batch else end
        if loses and not (beyond and self._rules.delta_sees_missing_versions):
            if first <= since:
                return None
            advice = BOOK.advise("delta_read_gone", which=span("version", since, first - 1))
            return Trouble(diagnoses.sources.DELTA_LEAVES_OUT, detail, advice, runs=True, skips=True)
        advice = self._advise_gap(since, first, Setting(DeltaOption.LOSES.value), skips=beyond and self._planned)
        error = messages.DELTA_VERSIONS_MISSING if loses else messages.DELTA_LOG_CLEANED
        return Trouble(diagnoses.sources.DELTA_LOG_CLEANED, detail, advice, error=error)

    def _advise_gap(self, since: int, to: int, option: Setting, *, skips: bool = False) -> Advice:
        """Advise how the query continues at version ``to``, without versions ``since`` some that are gone."""
        advice, last = BOOK.advise("delta_with_option", option=option), self._now.first - 1
        if to > self._end.version:
            advice = BOOK.advise("delta_continue", version=to, **self._set_to(to)) + advice
        if skips:
            name = "delta_skip_unreadable" if self._reads_batch else "delta_skip_in_sink"
            advice = BOOK.advise(name, batch=self._batch) + advice
        gone = last >= since
        return advice.lead(BOOK.text("delta_gone" if gone else "delta_whole", which=span("version", since, last)))

    def _move_back(self, version: int) -> dict[str, Any]:
        """Give the parts of advice that moves the end of the latest batch back; none where that is not possible.

        Not to before the latest batch began, at whose range a start looks again. Of a planned batch, which is skipped,
        nothing may be left.
        """
        before = self._before
        if before is None or before.initial_snapshot or self._end.initial_snapshot:
            return {}
        first = before.last_read + 1
        return self._set_to(version) if first == version or (first < version and not self._planned) else {}

    def _set_to(self, version: int) -> dict[str, Any]:
        return move_end(self._index, write_offset(replace(self._end, version=version, index=self._end.base_index)))

    def _compare_columns(self) -> Iterator[Trouble]:
        changed = [version for version, _ in self._new if not version.fits]
        if self._now.fits and not changed:
            return
        detail = "an unread column has another name in the newest version, or is gone"
        since = self._now.changed_in
        option = BOOK.text("delta_at_the_change") if since is None else Setting(f"startingVersion={since}")
        advice = BOOK.advise("delta_columns_changed", option=option)
        later = self._now.fits and self._planned
        error = messages.DELTA_COLUMNS_CHANGED
        yield Trouble(diagnoses.sources.DELTA_COLUMNS_CHANGED, detail, advice, error=error, later=later)

    def _find_changes(self) -> Iterator[Trouble]:
        options, before = self._now.options, 0
        if DeltaOption.SKIPS_CHANGES in options:
            skipped = [(version, files) for version, files in self._new if version.takes_rows and files]
            if skipped:
                yield self._explain_skipped(skipped)
            return
        if DeltaOption.IGNORES_CHANGES in options:
            return
        for version, files in [*self._list_again(), *self._new]:
            if version.takes_rows and (files or DeltaOption.IGNORES_DELETES not in options):
                new = version.version > self._end.last_read
                later = new and (self._planned or before > self._now.most_files)
                yield self._explain_change(version, files, later=later)
                return
            before += len(files)

    def _list_again(self) -> list[_VersionFiles]:
        """List the versions of the latest batch, at which a start looks once more."""
        if self._before is None or self._before.initial_snapshot:
            return []
        since = self._before.last_read
        return [(each, each.files) for each in self._now.versions if since < each.version <= self._end.last_read]

    def _explain_change(self, version: VersionNow, files: Sequence[FileNow], *, later: bool) -> Trouble:
        number = version.version
        if not files:
            advice = BOOK.advise("delta_deletes")
            detail, error = f"version {number} deletes rows", messages.DELTA_DELETES
        else:
            count = _count_files(files)
            advice = BOOK.advise("delta_changes", count=count, number=number)
            detail = f"version {number} rewrites rows: it adds {count} and removes others"
            error = messages.DELTA_CHANGES
        return Trouble(diagnoses.sources.DELTA_ROWS_CHANGED, detail, advice, error=error, later=later)

    def _explain_skipped(self, skipped: Sequence[_VersionFiles]) -> Trouble:
        left_out = [file for _, files in skipped for file in files]
        numbers = ", ".join(str(version.version) for version, _ in skipped[:5])
        versions, advice = plural_of(len(skipped), "version"), BOOK.advise("delta_skipped")
        detail = f"skipChangeCommits skips {_count_files(left_out)} of {versions} {numbers}"
        return Trouble(diagnoses.sources.DELTA_LEAVES_OUT, detail, advice, runs=True, skips=True)

    def _find_missing_files(self) -> Iterator[Trouble]:
        files = self.unread
        gone = [at for at, file in enumerate(files) if file.there is False]
        if not gone:
            return
        count = _count_files([files[at] for at in gone])
        has = "was not read is" if len(gone) == 1 else "were not read are"
        detail = f"{count} that {has} missing: deleted by VACUUM, or by hand"
        advice = BOOK.advise("delta_missing_files", count=count)
        later = gone[0] >= len(self._of_batch) if self._planned else gone[0] >= self._now.most_files
        error = messages.no_data_file(self._rules)
        yield Trouble(diagnoses.sources.DELTA_FILES_GONE, detail, advice, Outcome.FAILS_IN_BATCH, error, later=later)


def _count_files(files: Sequence[FileNow]) -> str:
    return describe_counts((1, file.rows) for file in files)


def _list_after(now: DeltaNow, offset: DeltaOffset) -> list[_VersionFiles]:
    """List what a query reads after an offset, by version; the rest of the first table is version -1."""
    if offset.initial_snapshot:
        rest = (now.snapshot or ())[max(offset.index, -1) + 1 :]
        return [
            (VersionNow(-1), rest),
            *((version, version.files) for version in now.versions if version.version > offset.version),
        ]
    unread: list[_VersionFiles] = []
    for version in now.versions:
        if version.version == offset.version and not offset.at_boundary:
            unread.append((VersionNow(version.version), version.files[offset.index + 1 :]))
        elif version.version >= offset.version:
            unread.append((version, version.files))
    return unread


def find_begin(before: DeltaOffset | None, end: DeltaOffset) -> DeltaOffset:
    """``DeltaSource.getBatch``: without a start, the table as of the version before the one where the batch ended."""
    whole = end.version if end.initial_snapshot else end.version - 1
    return before or DeltaOffset(end.table_id, whole, -1, initial_snapshot=True)


def _list_batch(now: DeltaNow, before: DeltaOffset | None, end: DeltaOffset) -> list[FileNow]:
    rest = sum(len(files) for _, files in _list_after(now, end))
    unread = [file for _, files in _list_after(now, find_begin(before, end)) for file in files]
    return unread[: len(unread) - rest]
