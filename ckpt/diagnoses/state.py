"""Diagnoses of the state and what describes it (CKPT3xx)."""

from ckpt import settings
from ckpt.diagnoses.common import ERROR, NOTE, RESTORE, WARNING
from ckpt.findings import Diagnosis

STATE_CHAIN_HOLE = Diagnosis(
    "CKPT301",
    "state-file-missing",
    ERROR,
    "A file is missing from the chain of snapshot and changes that the next start loads state from.",
    RESTORE,
)
STATE_FILE_DAMAGED = Diagnosis(
    "CKPT302",
    "state-file-damaged",
    ERROR,
    "A state file that the next start loads is empty, truncated or cannot be decoded.",
    RESTORE,
)
STATE_SST_MISSING = Diagnosis(
    "CKPT303",
    "sst-file-missing-or-damaged",
    ERROR,
    "A RocksDB snapshot names an SST file that is missing, or whose size differs from the recorded one.",
    RESTORE,
)
STATE_FOLDER_MISSING = Diagnosis(
    "CKPT304",
    "state-folder-missing",
    ERROR,
    "The folder of an operator, a partition or a store is missing, so its state cannot be loaded.",
    RESTORE,
)
STATE_MOVED = Diagnosis(
    "CKPT305",
    "moved-transformwithstate-checkpoint",
    ERROR,
    "Operator metadata of transformWithState names its schema files by absolute path, in another place: the "
    "checkpoint was moved or copied. If the old path is gone, neither a restart nor the state reader works; if it "
    "still exists, Spark silently reads the schemas there.",
    "`ckpt relocate {checkpoint}` makes it find them here. Or: move the checkpoint back to where it was written, "
    "or make the old path lead here (locally by a symbolic link).",
)
STATE_ABOVE = Diagnosis(
    "CKPT306",
    "state-of-an-abandoned-timeline",
    ERROR,
    "There are state files above the version that the next start loads and writes. Spark does not ignore them "
    "later: once the query reaches that version, it may load the old file and continue with wrong state, without "
    "any error.",
    "If offsets or commits were removed by hand, stop the query and move the newer state files away as well.",
)
SNAPSHOT_LAG = Diagnosis(
    "CKPT307",
    "snapshot-lag",
    NOTE,
    "Loading the state replays many versions of changes on top of the newest snapshot, which makes a start slow.",
    f"Let the query run longer than {settings.MAINTENANCE_INTERVAL} (60 s), so that it writes snapshots.",
)
NO_OPERATOR_METADATA = Diagnosis(
    "CKPT308",
    "no-operator-metadata",
    NOTE,
    "Spark before 4.0 wrote no operator metadata. The query restarts; Spark's state reader needs the operator and "
    "store as options, and the format state-metadata shows nothing.",
    None,
)
UNREADABLE_STATE_METADATA = Diagnosis(
    "CKPT309",
    "unreadable-state-metadata",
    WARNING,
    "A file that describes the state (operator metadata or schema) cannot be read.",
    RESTORE,
)
FORMAT_TWO = Diagnosis(
    "CKPT310",
    "state-format-2-needs-its-setting",
    NOTE,
    "State store checkpoint format 2 is not recorded in the checkpoint: a session of Spark before 4.3 that "
    "lacks its setting cannot load the state. The forecast is for a session that has it.",
    f"Start the query with {settings.CHECKPOINT_FORMAT}=2, as it was started before.",
)
STATE_MOVED_JOIN = Diagnosis(
    "CKPT311",
    "moved-schemas-of-a-join",
    WARNING,
    "Operator metadata of a join (state format 3 or 4) names its schema files by absolute path, in another place. "
    "The query restarts and writes them again; until then Spark's state reader fails on this checkpoint.",
    "`ckpt relocate {checkpoint}` makes the reader find them here. Or: start the query once before reading its state.",
)
NO_STATE_FOLDER = Diagnosis(
    "CKPT312",
    "no-state-folder",
    NOTE,
    "There is no folder state/. That is normal for a stateless query; one that aggregates, joins or deduplicates "
    "has lost its state, and no other file shows it.",
    "If the query keeps state, restore state/ from a copy of the checkpoint before it is started.",
)
ODD_END = Diagnosis(
    "CKPT313",
    "state-file-cut-behind-its-data",
    NOTE,
    "A state file that the next start loads lacks its end marker, or its checksum file is empty. All its "
    "data is there.",
    None,
)
STATE_SCHEMA_MISSING = Diagnosis(
    "CKPT314",
    "state-schema-missing",
    NOTE,
    "The schema of a state store is missing. The query restarts without it; Spark's state reader fails.",
    RESTORE,
)
STATE_TOO_NEW = Diagnosis(
    "CKPT315",
    "state-of-a-newer-spark",
    ERROR,
    "The checkpoint has state of transformWithState, which Spark supports since 4.0: no earlier version can run "
    "the query that wrote it.",
    "Start the query with Spark 4.0 or later.",
)
SNAPSHOT_OF_4_0 = Diagnosis(
    "CKPT316",
    "snapshot-that-only-spark-4-0-reads",
    ERROR,
    "In state store checkpoint format 2 Spark 4.0 writes v2 into its RocksDB snapshots, and every other version wants "
    "v1. Spark 4.2 and later rebuild the state from changelogs, where all of them are there; 4.1 never does.",
    "Start the query with a Spark version for which `ckpt inspect {checkpoint}` forecasts a restart.",
)
STATE_OF_OLD_SPARK = Diagnosis(
    "CKPT317",
    "state-without-schema-of-old-spark",
    WARNING,
    "Spark before 3.1 wrote this state, without a schema. Later versions check its rows against the query: most pass, "
    "and some fail with VALUE_ROW_FORMAT_VALIDATION_FAILURE, such as sums of decimals. No file tells which.",
    "Start the query on a copy of the checkpoint first, with a sink of its own. If Spark refuses the rows, only the "
    "version that wrote them resumes from this checkpoint.",
)
OPERATOR_UNKNOWN = Diagnosis(
    "CKPT318",
    "operator-unknown",
    ERROR,
    "Operator metadata names an operator that no Spark up to 4.3 has: the file is damaged, or a newer Spark wrote it. "
    "Spark 4.0 and later compare the name with the query's, and fail at start.",
    RESTORE,
)
JOIN_OF_FORMAT_1 = Diagnosis(
    "CKPT319",
    "join-in-state-format-1",
    WARNING,
    "The state of a join has format 1, as Spark up to 2.4 writes it. Later versions refuse outer joins in that format, "
    "because their results were wrong, and Spark 4.2 fails for all of them: Unsupported schema writer version: 1.",
    "Begin the join in a new checkpoint: `ckpt handoff {checkpoint}` says where its sources continue. The rows that it "
    "has buffered are not carried over.",
)
