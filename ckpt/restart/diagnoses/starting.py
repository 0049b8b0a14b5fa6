"""Diagnoses of what ``ckpt preflight`` finds in a start that is about to be tried (CKPT43x, CKPT44x)."""

from ckpt.restart.diagnoses.common import ERROR, WARNING
from ckpt.restart.findings import Diagnosis

_OLD_QUERY = (
    "Start the query that wrote the checkpoint, or start the new one with a new checkpoint, whose state is empty: "
    "`ckpt handoff {checkpoint}` says where its sources have to begin."
)
_LEAVES = (
    "The failed start leaves a new offsets file behind, so the batch has its range when the right query starts again."
)

SECOND_DRIVER = Diagnosis(
    "CKPT431",
    "checkpoint-in-use",
    ERROR,
    "Files of the checkpoint changed while ckpt was looking: a driver is running on it. Two drivers on one checkpoint "
    "overwrite each other's batches until one fails with CONCURRENT_STREAM_LOG_UPDATE, and may write rows twice.",
    "Stop the other query first, or let it run.",
)
NUMBER_OF_SOURCES = Diagnosis(
    "CKPT432",
    "query-has-other-number-of-sources",
    ERROR,
    "The query has another number of sources than the checkpoint. The start fails before it writes anything.",
    f"A source cannot be added to a checkpoint, nor taken from it. {_OLD_QUERY}",
)
OTHER_SOURCE = Diagnosis(
    "CKPT433",
    "query-has-another-source",
    ERROR,
    "A source of the query is of another kind than the one that the checkpoint has in its place, or the sources have "
    "changed places. Spark tells sources apart by their order only, and the start fails with an error that does not "
    "say so, or reads from the wrong place.",
    f"Put the sources of the query in the order that the checkpoint has. Otherwise: {_OLD_QUERY}",
)
OTHER_OPERATORS = Diagnosis(
    "CKPT434",
    "query-has-other-stateful-operators",
    ERROR,
    f"The stateful operators of the query are not those of the checkpoint. Spark refuses, or finds no state. {_LEAVES}",
    _OLD_QUERY,
)
KEY_SCHEMA = Diagnosis(
    "CKPT435",
    "query-has-another-state-key",
    ERROR,
    "The key of the state has other types, or another number or order of columns, than in the checkpoint "
    f"(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE). {_LEAVES}",
    _OLD_QUERY,
)
VALUE_SCHEMA = Diagnosis(
    "CKPT436",
    "query-has-another-state-value",
    ERROR,
    "What the state keeps for each key has other types, or another number or order of columns, than in the checkpoint "
    f"(STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE): an aggregate came, went or changed its type. {_LEAVES}",
    _OLD_QUERY,
)
NOT_SUPPORTED = Diagnosis(
    "CKPT437",
    "query-not-supported",
    ERROR,
    "Spark has no such query in this output mode, whatever the checkpoint. The start fails before it writes anything.",
    "Choose an output mode that the query supports.",
)
STATE_VARIABLES = Diagnosis(
    "CKPT438",
    "query-has-another-state-variable",
    ERROR,
    "A variable, the time mode or the output mode of transformWithState is another one than in the checkpoint "
    f"(STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE, STATE_STORE_INVALID_CONFIG_AFTER_RESTART). {_LEAVES}",
    f"Give a variable of another kind another name, and leave the modes as they were. Otherwise: {_OLD_QUERY}",
)
REFUSED = Diagnosis(
    "CKPT439",
    "spark-cannot-plan-the-restart",
    ERROR,
    "Spark itself, asked to plan the next batch of this query on a copy of the state's description, fails.",
    _OLD_QUERY,
)
WRONG_SETTING = Diagnosis(
    "CKPT440",
    "setting-does-not-fit-the-state",
    ERROR,
    "The state can be read with one value of a setting only. The offset log does not record it, and the session has "
    "another one. The start fails, at the latest in its first batch.",
    "Start the query with the value of the checkpoint.",
)
NEEDED_SETTING = Diagnosis(
    "CKPT441",
    "setting-needed-and-not-seen",
    WARNING,
    "The state can be read with one value of a setting only. The offset log does not record it, and ckpt was not told "
    "whether the session has it.",
    "Start the query with the value of the checkpoint.",
)
RENAMED = Diagnosis(
    "CKPT442",
    "query-renamed-state",
    WARNING,
    "Columns of the state have other names than in the checkpoint, and the same types. Spark compares types only: it "
    "starts, and continues with the old values under the new names.",
    "Make sure that only the name changed. If the column means something else now, start with a new checkpoint, "
    "whose state is empty.",
)
LEFT_BEHIND = Diagnosis(
    "CKPT445",
    "query-leaves-state-behind",
    ERROR,
    "The query has fewer stateful operators than the checkpoint, which has no operator metadata (Spark before 4.0 "
    "wrote none), so that no version compares them. Spark starts, and takes the operators by their number: state of "
    "one is read as that of another, or never again.",
    _OLD_QUERY,
)
NOTHING_HERE = Diagnosis(
    "CKPT446",
    "checkpoint-expected",
    ERROR,
    "The query has run before, as `--must-exist` says, and no batch is planned here: the volume is not mounted, the "
    "path is another one, or the checkpoint was deleted. A start would read every source from its beginning.",
    "Look for the checkpoint: the volume, the path, the bucket. If it is lost, put it back from a copy. For a new "
    "query leave out `--must-exist`.",
)
OTHER_FOLDER = Diagnosis(
    "CKPT443",
    "query-reads-another-folder",
    WARNING,
    "A file source reads another folder than the batches before, and the latest batch has no files that Spark would "
    "refuse because of that. The query starts, and reads all files of the new folder, including any that were moved "
    "there. Files of the old folder that have not been read yet are never read.",
    "Set the option path back to the old folder, unless all files of the new one are to be read.",
)
OTHER_TOPIC = Diagnosis(
    "CKPT444",
    "query-reads-another-topic",
    ERROR,
    "The query does not subscribe to a topic that the checkpoint has read. The next new batch fails (Partitions Set "
    "... have been deleted) and leaves an offsets file of the new topics behind. With failOnDataLoss=false it runs, "
    "and rows of the old topic that wait are never read.",
    "Subscribe to the old topics too. To give one up, first take it out of the checkpoint with `ckpt offsets set "
    "{checkpoint}`.",
)
