"""Rules for a start at the files that a file source has now, as measured.

No file that is gone fails a start: it is left out, also of a batch that was planned. Those that are older than
``maxFileAge``, seen from the newest that was read, are never listed as new. But a start asks for the latest batch once
more (``MicroBatchExecution.populateStartOffsets``), and its files have to be below the folder. In a folder with
partitions that is looked at when the batch runs, so not for a committed one.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from ckpt.advice import Setting
from ckpt.errors import one_line
from ckpt.live.book import BOOK
from ckpt.live.kind import NextRead
from ckpt.live.outlook import SourceOutcome, SourceOutlook, Trouble, judge_source
from ckpt.live.records import FilesNow
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Finding, Outcome
from ckpt.storage.locations import family
from ckpt.texts import mask_secrets, plural, plural_of, quote_word

_HOUR_MS = 3_600_000


def foresee_files(start: NextRead, now: FilesNow) -> SourceOutlook:
    """Foresee what the next start makes of a file source; pure."""
    source, reading, batch = start.source, start.range, start.forecast.batch_id
    again = reading.end is not None
    if now.refused is not None and (again or not now.partitions):
        fails = Outcome.FAILS_IN_BATCH if now.partitions else Outcome.FAILS_AT_START
        folder, _, _ = unquote(now.refused).partition("=")[0].rpartition("/")
        root, read_in = one_line(mask_secrets(now.place)), batch if again else (batch or 0) - 1
        detail = f"batch {read_in} has read {one_line(now.refused)}, which is not below {root}"
        advice = BOOK.advise("files_outside", folder=quote_word(one_line(folder)), now=root)
        words = _find_words(now.refused, now.place)
        trouble = Trouble(diagnoses.sources.FILES_OUTSIDE, detail, advice, fails, words)
        return judge_source(source, [trouble], f"{plural(now.files, 'file')}, none of which the query has read")
    planned = again and not start.passed
    if planned and now.apart:
        findings = tuple(_find_changes(now, (), now.changed, batch, source.folder))
        sentence = f"{plural_of(now.apart, 'file')} of batch {batch} in other folders: ckpt did not check there"
        return SourceOutlook(source, said=f"{now.apart:,} {sentence}", findings=findings)
    gone = now.gone if planned else ()
    changed = now.changed + (0 if planned else now.changed_last)
    findings = tuple(_find_changes(now, gone, changed, batch, source.folder))
    rerun = f"; {now.planned:,} of batch {batch} are read again" if planned else ""
    sentence = f"{plural(now.files, 'file')}, {now.unseen:,} unread{rerun}"
    waiting = now.unseen + (now.planned - len(gone) if planned else 0)
    outcome = SourceOutcome.SKIPS if gone or now.old else SourceOutcome.CONTINUES
    return SourceOutlook(source, outcome, sentence, (), findings, waiting, None, len(gone) + now.old)


def _find_words(refused: str, folder: str) -> str | None:
    """Find words of Spark's message; None where the file system is of the same kind, and may be another one."""
    (was, _, old), (is_now, colon, new) = refused.partition(":"), folder.partition(":")
    if not (colon and new.startswith("/")):
        return messages.WRONG_BASE_PATH if was == "file" else None
    if family(was) != family(is_now):
        return messages.WRONG_FILE_SYSTEM
    same = was == "file" or (was == is_now and old.split("/")[:3] == new.split("/")[:3])
    return messages.WRONG_BASE_PATH if same else None


def _find_changes(
    now: FilesNow, gone: tuple[str, ...], changed: int, batch: int | None, path: str
) -> Iterator[Finding]:
    if now.elsewhere:
        yield Finding(diagnoses.sources.FILES_ELSEWHERE, path, f"the log of the source names {now.seen:,} other files")
        return
    if gone:
        more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
        detail = f"{len(gone):,} of {now.planned:,} files of batch {batch} are gone: {one_line(gone[0])}{more}"
        advice = BOOK.advise("files_of_batch_gone", batch=batch)
        yield Finding(diagnoses.sources.FILES_OF_BATCH_GONE, path, detail, advice)
    if now.old:
        hours = now.oldest_ms // _HOUR_MS + 1
        were = f"{plural_of(now.old, 'file')} that {'was' if now.old == 1 else 'were'} not read"
        detail = f"{now.old:,} {were}: up to {hours:,} hours older"
        advice = BOOK.advise("files_too_old", option=Setting(f"maxFileAge={hours}h"))
        yield Finding(diagnoses.sources.FILES_TOO_OLD, path, detail, advice)
    if changed:
        yield Finding(diagnoses.sources.FILES_CHANGED, path, f"{changed:,} of {now.seen:,} files that were read")
