"""What can be said about a checkpoint: each diagnosis is declared here once, and nowhere else.

Codes, names, severities, exit status, JSON and ``docs/findings.md`` all derive from these declarations. A code is
never reused. ``meaning`` and ``remedy`` may hold ``{checkpoint}``, which is replaced by the path that was inspected.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a finding means for the query. Only warnings and errors make ``ckpt inspect`` exit with 1."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"  # stops a restart, loses data, or makes state unreadable

    @property
    def rank(self) -> int:
        """0 for a note, 2 for an error: for sorting and comparing."""
        return list(Severity).index(self)


class Asked(StrEnum):
    """Which progress tracking the question was about: the option ``--progress``."""

    SYNC = "sync"
    ASYNC = "async"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One kind of trouble, described once."""

    code: str
    name: str
    severity: Severity
    meaning: str
    remedy: str | None  # a ckpt command, a Spark setting, or exact manual steps; None where nothing has to be done
    when_asked: tuple[tuple[Asked, Severity], ...] = ()  # where the severity depends on the progress mode

    def severity_for(self, asked: Asked) -> Severity:
        """How much it matters to somebody who asked about this progress mode."""
        return dict(self.when_asked).get(asked, self.severity)


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnosis at one place of one checkpoint."""

    diagnosis: Diagnosis
    path: str  # relative to the checkpoint; "" is the checkpoint itself
    detail: str  # what was seen here, one line


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

_RESTORE = (
    "Stop the query, put the file back from a copy of the checkpoint (object stores with versioning keep one), "
    "and run ckpt inspect {checkpoint} again."
)

UNREADABLE_LOG = Diagnosis(
    "CKPT101",
    "unreadable-log-file",
    ERROR,
    "A file of the offset or commit log that every start reads cannot be read, so the query fails at start. "
    "Spark's own message often names no file.",
    "Stop the query and put the file back from a copy of the checkpoint (object stores with versioning keep one). "
    "Without a copy: a file offsets/N that has no commits/N, or the newest file of commits/, can be moved away "
    "together with its .N.crc. Spark then plans, or runs, batch N again: what it had written is written again, and a "
    "sink that skips known batch ids may drop rows. For any other file there is no such way.",
)
UNREADABLE_LOG_IGNORED = Diagnosis(
    "CKPT102",
    "unreadable-log-file-ignored",
    NOTE,
    "A log file that no start reads cannot be read. Spark does not notice; going back to that batch by hand would.",
    None,
)
MISSING_METADATA = Diagnosis(
    "CKPT103",
    "missing-metadata",
    ERROR,
    "The file metadata, which holds the query id, is gone. Spark 4.2 and later refuse to start; earlier "
    "versions start under a new query id, so sinks that remember the id (Delta's txnAppId) take old "
    "batches for new ones.",
    'Write the file {checkpoint}/metadata with the old id: {"id":"<query id>"}. The id stands in the '
    "driver log, in the query's progress events and, for a Delta sink, in the table log as txnAppId.",
)
UNREADABLE_METADATA = Diagnosis(
    "CKPT104",
    "unreadable-metadata",
    ERROR,
    "The file metadata cannot be read, so no Spark version starts the query.",
    'Write the file {checkpoint}/metadata again: {"id":"<query id>"}. The id stands in the driver log, in the '
    "query's progress events and, for a Delta sink, in the table log as txnAppId.",
)
NEWER_LOG_VERSION = Diagnosis(
    "CKPT105",
    "log-version-not-supported",
    ERROR,
    "A log file that a start reads has a version line that this Spark version cannot read.",
    "Start the query with a Spark version for which ckpt inspect {checkpoint} promises a restart.",
)
SOURCES_DIFFER = Diagnosis(
    "CKPT106",
    "number-of-sources-changed",
    ERROR,
    "Offset files name different numbers of sources. A query keeps its number as long as it keeps its checkpoint, and "
    'Spark refuses another one: "There are [1] sources in the checkpoint offsets and now there are [2]".',
    _RESTORE,
)
MALFORMED_OFFSET = Diagnosis(
    "CKPT107",
    "malformed-source-offset",
    ERROR,
    "The offset of a source, in an offset file that a start reads, is not JSON. Spark reads the log and "
    "then fails when it hands the offset to the source.",
    _RESTORE,
)
NEW_QUERY_ID = Diagnosis(
    "CKPT108",
    "new-query-id",
    WARNING,
    "The file metadata is gone, and this Spark version starts all the same, under a new query id. Sinks "
    "that remember the id (Delta's txnAppId) take the batch that is run next for a new one, also where "
    "they have it already.",
    'Write the file {checkpoint}/metadata with the old id before the start: {"id":"<query id>"}.',
)
NEWER_SETTING = Diagnosis(
    "CKPT109",
    "recorded-setting-not-supported",
    ERROR,
    "The offsets record a setting, which a restart takes over, with a value that this Spark version does not know.",
    "Start the query with a Spark version for which ckpt inspect {checkpoint} promises a restart.",
)
MISSING_PREDECESSOR = Diagnosis(
    "CKPT201",
    "missing-predecessor",
    ERROR,
    "A synchronous start looks for the offsets of the batch before the latest one, and they are not "
    'there: Spark fails with words like "batch 308 doesn\'t exist". Asynchronous progress tracking leaves '
    "such gaps and starts across them.",
    "Start with the option asyncProgressTrackingEnabled=true, under which the query resumes; or, to go "
    "back to synchronous tracking, let it run so with asyncProgressTrackingCheckpointIntervalMs=0 for two"
    " batches, and then switch.",
    ((Asked.ASYNC, NOTE), (Asked.BOTH, WARNING)),
)
LOST_PREDECESSOR = Diagnosis(
    "CKPT202",
    "lost-predecessor",
    ERROR,
    "A synchronous start looks for the offsets of the batch before the latest one, and they are not there. The logs do "
    "not have the gaps that asynchronous progress tracking leaves, so the file was lost or removed.",
    _RESTORE
    + " A stateless query can instead be started once with the option asyncProgressTrackingEnabled=true, which "
    "does not look for that file.",
)
UNCOMMITTED_LATEST = Diagnosis(
    "CKPT203",
    "latest-batch-uncommitted",
    NOTE,
    "The latest batch was planned and not committed. The next start runs it again over the same offsets; "
    "rows it had already written are written again, unless the sink skips batch ids it has seen.",
    None,
)
COMMITS_AHEAD = Diagnosis(
    "CKPT204",
    "commits-ahead-of-offsets",
    ERROR,
    "The commit log ends after the offset log: offset files were lost or removed. Spark runs the latest "
    "planned batch again, and then dies when it finds that batch's commit: CONCURRENT_STREAM_LOG_UPDATE, "
    "which speaks of several streaming jobs though there is only one.",
    "Stop the query and restore the missing offset files from a copy of the checkpoint. Without a copy: "
    "move the files of {checkpoint}/commits from the latest planned batch on away, each with its .crc; "
    "that batch is then run again (its rows are written again), and sources read on from its end.",
)
COMMITS_BEHIND = Diagnosis(
    "CKPT205",
    "batches-never-run",
    ERROR,
    "The commit log ends more than one batch before the offset log. Spark runs only the latest planned "
    "batch; those in between are never run again, and if they had not finished their rows are lost "
    "without any error.",
    "Find out from the sink or the driver log whether the batches named here were written. If they were, "
    "nothing is lost. If not: stop the query and move the offset files after the first of them away "
    "(newest first, each with its .crc), so that Spark runs from that one on. Not for a stateful query, "
    "whose newer state files would have to go too.",
)
COMMITS_WITHOUT_OFFSETS = Diagnosis(
    "CKPT206",
    "commits-without-offsets",
    ERROR,
    "There are commits (or state) and no offsets at all: Spark takes the query for a new one and then "
    "trips over what is left.",
    "Restore {checkpoint}/offsets from a copy. To begin anew instead, use a new checkpoint folder, and "
    "mind that sources are then read from their beginning and sinks that skip known batch ids drop the "
    "first batches.",
)
GAP_IGNORED = Diagnosis(
    "CKPT207",
    "gap-that-no-start-looks-at",
    NOTE,
    "Batches are missing from the middle of a log. No start looks at them.",
    None,
)
ASYNC_REFUSES_STATE = Diagnosis(
    "CKPT208",
    "asynchronous-tracking-refuses-state",
    ERROR,
    "Spark refuses asynchronous progress tracking for a stateful query.",
    "Start the query without the option asyncProgressTrackingEnabled.",
)
REPLAY_FROM_BEGINNING = Diagnosis(
    "CKPT209",
    "replay-from-the-beginning",
    WARNING,
    "Under asynchronous tracking the latest batch is run again and no earlier offsets are there, so its "
    "range begins where its sources begin: rows of earlier batches are read and written again.",
    "Accept the replay, or restore an earlier offset file from a copy of the checkpoint before the start.",
)
UNFINISHED_REPARTITION = Diagnosis(
    "CKPT210",
    "unfinished-repartition",
    ERROR,
    "The latest batch is not committed and records another number of shuffle partitions than the batch "
    "before: Spark 4.2 and later take it for an offline repartitioning that broke off, and refuse to "
    "start.",
    "Run the repartitioning again with the same number of partitions. If there was none (Spark 4.2 and "
    "later mistake a changed setting for one), set "
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart=false.",
)
TWO_WRITERS = Diagnosis(
    "CKPT211",
    "two-writers-suspected",
    WARNING,
    "Files of the log contradict each other in a way that one query alone does not leave behind: two "
    "queries may be writing to this checkpoint.",
    "Make sure that exactly one query uses {checkpoint}: stop all others before the next start.",
)
LOG_LAGS_BEHIND = Diagnosis(
    "CKPT212",
    "log-lags-behind-the-sink",
    NOTE,
    "The gaps are those of asynchronous progress tracking, whose log lags behind: batches that ran after the last "
    "logged one are not in it. Rows they had written are read and written again by any start, under ids used before.",
    None,
)
STATE_CHAIN_HOLE = Diagnosis(
    "CKPT301",
    "state-file-missing",
    ERROR,
    "A file is missing from the chain of snapshot and changes that the next start loads state from.",
    _RESTORE,
)
STATE_FILE_DAMAGED = Diagnosis(
    "CKPT302",
    "state-file-damaged",
    ERROR,
    "A state file that the next start loads is empty, cut short or cannot be decoded.",
    _RESTORE,
)
STATE_SST_MISSING = Diagnosis(
    "CKPT303",
    "sst-file-missing-or-damaged",
    ERROR,
    "A RocksDB snapshot names an SST file that is not there, or not in its recorded size.",
    _RESTORE,
)
STATE_FOLDER_MISSING = Diagnosis(
    "CKPT304",
    "state-folder-missing",
    ERROR,
    "The folder of an operator, a partition or a store is not there, so its state cannot be loaded.",
    _RESTORE,
)
STATE_MOVED = Diagnosis(
    "CKPT305",
    "moved-transformwithstate-checkpoint",
    ERROR,
    "Operator metadata of transformWithState names its schema files by absolute path, and those lie "
    "elsewhere: the checkpoint was moved or copied. Where the old path is gone, neither a restart nor the"
    " state reader works; where it still exists, schemas are read from there without a word.",
    "Put the checkpoint back to where it was written, or make the old path reachable (locally a symbolic "
    "link will do).",
)
STATE_ABOVE = Diagnosis(
    "CKPT306",
    "state-of-an-abandoned-timeline",
    ERROR,
    "There are state files above the version that the next start loads and writes. They are not ignored "
    "later: once the query comes to that version, it may load the old file and go on with wrong state, "
    "without any error.",
    "If offsets or commits were removed by hand, stop the query and move the newer state files away as well.",
)
SNAPSHOT_LAG = Diagnosis(
    "CKPT307",
    "snapshot-lag",
    NOTE,
    "Loading the state replays many versions of changes on top of the newest snapshot, which makes a start slow.",
    "Let the query run longer than spark.sql.streaming.stateStore.maintenanceInterval (60 s), so that it "
    "writes snapshots.",
)
NO_OPERATOR_METADATA = Diagnosis(
    "CKPT308",
    "no-operator-metadata",
    NOTE,
    "Spark before 4.0 wrote no operator metadata. The query restarts; Spark's state reader needs to be "
    "told operator and store, and the format state-metadata shows nothing.",
    None,
)
UNREADABLE_STATE_METADATA = Diagnosis(
    "CKPT309",
    "unreadable-state-metadata",
    WARNING,
    "A file that describes the state (operator metadata or schema) cannot be read.",
    _RESTORE,
)
FORMAT_TWO = Diagnosis(
    "CKPT310",
    "state-format-2-needs-its-setting",
    NOTE,
    "State store checkpoint format 2 is not recorded in the checkpoint: a session of Spark before 4.3 that "
    "lacks its setting cannot load the state. The forecast is for a session that has it.",
    "Start the query with spark.sql.streaming.stateStore.checkpointFormatVersion=2, as it was started before.",
)
STATE_MOVED_JOIN = Diagnosis(
    "CKPT311",
    "moved-schemas-of-a-join",
    WARNING,
    "Operator metadata of a join (state format 3 or 4) names its schema files by absolute path, elsewhere than here. "
    "The query restarts and writes them anew; until then Spark's state reader fails on this checkpoint.",
    "Start the query once before reading its state, or put the checkpoint back to where it was written.",
)
OFFSETS_WENT_BACK = Diagnosis(
    "CKPT401",
    "offsets-went-backwards",
    WARNING,
    "A source's offsets are lower than those of an earlier batch: a topic or table was recreated, or a "
    "file was put back by hand. Rows in between may be missing or read twice.",
    "Compare the offsets shown with those that the source has now; with Kafka, failOnDataLoss=false goes "
    "on with what is there.",
)
SOURCE_REPLACED = Diagnosis(
    "CKPT402",
    "delta-table-replaced",
    WARNING,
    "The table id in the offsets of a Delta source changed between batches: the table was dropped and created again.",
    "Start the query on the new table with a new checkpoint and the option startingVersion.",
)
SOURCE_LOG_HOLE = Diagnosis(
    "CKPT403",
    "file-source-log-hole",
    ERROR,
    'The log of a file source lacks an entry it needs. Spark fails at start with words like "batch 5 '
    "doesn't exist\", the same as for a missing offset file.",
    _RESTORE,
)
SOURCE_LOG_UNREADABLE = Diagnosis(
    "CKPT404",
    "source-log-unreadable",
    ERROR,
    "A file that a source keeps in the checkpoint, and reads at start, cannot be read.",
    _RESTORE,
)
SINK_LOG_HOLE = Diagnosis(
    "CKPT405",
    "file-sink-log-hole",
    ERROR,
    "_spark_metadata lacks an entry that the next compaction or reader needs.",
    "Restore the missing file of _spark_metadata from a copy, or write to a new output folder with a new checkpoint.",
)
ORPHAN_SIDECAR_BLOCKS = Diagnosis(
    "CKPT501",
    "orphan-checksum-file-in-the-way",
    ERROR,
    "A hidden checksum file is left without its file, where Spark has yet to write: the query dies with "
    'the words "Multiple streaming queries are concurrently using", though there is only one.',
    "Stop the query and remove the checksum file named here.",
)
ORPHAN_SIDECAR = Diagnosis(
    "CKPT502",
    "orphan-checksum-file",
    NOTE,
    "A hidden checksum file is left without its file, where no batch will be written.",
    None,
)
STALE_SIDECAR = Diagnosis(
    "CKPT503",
    "stale-checksum-file",
    NOTE,
    "A log file does not match its hidden checksum file: it was changed by hand or damaged. Spark does "
    "not notice on its logs; other Hadoop clients refuse the file.",
    None,
)
DIRECTORY_IN_THE_WAY = Diagnosis(
    "CKPT504",
    "directory-in-the-way",
    ERROR,
    "A folder has the name of a file that Spark has yet to write. The write fails, and Spark speaks of several "
    "streaming jobs though there is only one.",
    "Stop the query and move the folder out of the checkpoint.",
)
LEFTOVER = Diagnosis(
    "CKPT505",
    "leftover-temporary-files",
    NOTE,
    "Temporary files are left from writes that broke off. Spark does not look at them.",
    None,
)
ODD_NAME = Diagnosis(
    "CKPT506",
    "name-spark-reads-as-a-batch",
    ERROR,
    "Spark takes this name for a batch id, though it would never write it so, and then looks for a file "
    "that is not there.",
    "Stop the query and move the file out of the checkpoint.",
)
CHANGED_WHILE_READ = Diagnosis(
    "CKPT507",
    "changed-while-read",
    NOTE,
    "Files came or went while the checkpoint was read: a query is using it now, so what is said here may be old.",
    "Run ckpt inspect {checkpoint} again, best with the query stopped.",
)
CONTINUOUS = Diagnosis(
    "CKPT601",
    "continuous-processing",
    NOTE,
    "This checkpoint was written by continuous processing, whose restart ckpt does not forecast.",
    None,
)


def all_diagnoses() -> tuple[Diagnosis, ...]:
    """Every diagnosis, in the order of its code."""
    found = [value for value in globals().values() if isinstance(value, Diagnosis)]
    return tuple(sorted(found, key=lambda diagnosis: diagnosis.code))


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The highest of several severities, or None where there is none."""
    return max(severities, key=lambda severity: severity.rank, default=None)
