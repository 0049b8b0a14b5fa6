"""Diagnoses of what ``ckpt preflight`` finds in a start that is about to be tried (CKPT43x, CKPT44x)."""

from ckpt.restart.diagnoses.common import error, warning

_OLD_QUERY = (
    "Start the query that wrote the checkpoint, or start the new one with a new checkpoint, whose state is empty: "
    "`ckpt handoff {checkpoint}` says where its sources have to begin."
)
_LEAVES = (
    "The failed start leaves a new offsets file behind, so the batch has its range when the right query starts again."
)

SECOND_DRIVER = error(
    "CKPT431 checkpoint-in-use",
    "Files of the checkpoint changed while ckpt was looking: a driver is running on it. Two drivers on one checkpoint "
    "overwrite each other's batches until one fails with CONCURRENT_STREAM_LOG_UPDATE, and may write rows twice.",
    "Stop the other query first, or let it run.",
)
NUMBER_OF_SOURCES = error(
    "CKPT432 query-has-other-number-of-sources",
    "The query has another number of sources than the checkpoint. The start fails before it writes anything.",
    f"A source cannot be added to a checkpoint, nor taken from it. {_OLD_QUERY}",
)
OTHER_SOURCE = error(
    "CKPT433 query-has-another-source",
    "A source of the query is of another kind than the one that the checkpoint has in its place, or the sources have "
    "changed places. Spark tells sources apart by their order only, and the start fails with an error that does not "
    "say so, or reads from the wrong place.",
    f"Put the sources of the query in the order that the checkpoint has. Otherwise: {_OLD_QUERY}",
)
OTHER_OPERATORS = error(
    "CKPT434 query-has-other-stateful-operators",
    f"The stateful operators of the query are not those of the checkpoint. Spark refuses, or finds no state. {_LEAVES}",
    _OLD_QUERY,
)
KEY_SCHEMA = error(
    "CKPT435 query-has-another-state-key",
    "The key of the state has other types, or another number or order of columns, than in the checkpoint "
    f"(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE). {_LEAVES}",
    _OLD_QUERY,
)
VALUE_SCHEMA = error(
    "CKPT436 query-has-another-state-value",
    "What the state keeps for each key has other types, or another number or order of columns, than in the checkpoint "
    f"(STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE): an aggregate came, went or changed its type. {_LEAVES}",
    _OLD_QUERY,
)
NOT_SUPPORTED = error(
    "CKPT437 query-not-supported",
    "Spark has no such query in this output mode, whatever the checkpoint. The start fails before it writes anything.",
    "Choose an output mode that the query supports.",
)
STATE_VARIABLES = error(
    "CKPT438 query-has-another-state-variable",
    "A variable, the time mode or the output mode of transformWithState is another one than in the checkpoint "
    f"(STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE, STATE_STORE_INVALID_CONFIG_AFTER_RESTART). {_LEAVES}",
    f"Give a variable of another kind another name, and leave the modes as they were. Otherwise: {_OLD_QUERY}",
)
REFUSED = error(
    "CKPT439 spark-cannot-plan-the-restart",
    "Spark itself, asked to plan the next batch of this query on a copy of the state's description, fails.",
    _OLD_QUERY,
)
WRONG_SETTING = error(
    "CKPT440 setting-does-not-fit-the-state",
    "The state can be read with one value of a setting only. The offset log does not record it, and the session has "
    "another one. The start fails, at the latest in its first batch.",
    "Start the query with the value of the checkpoint.",
)
NEEDED_SETTING = warning(
    "CKPT441 setting-needed-and-not-seen",
    "The state can be read with one value of a setting only. The offset log does not record it, and ckpt was not told "
    "whether the session has it.",
    "Start the query with the value of the checkpoint.",
)
RENAMED = warning(
    "CKPT442 query-renamed-state",
    "Columns of the state have other names than in the checkpoint, and the same types. Spark compares types only: it "
    "starts, and continues with the old values under the new names.",
    "Make sure that only the name changed. If the column means something else now, start with a new checkpoint, "
    "whose state is empty.",
)
LEFT_BEHIND = error(
    "CKPT445 query-leaves-state-behind",
    "The query has fewer stateful operators than the checkpoint, which has no operator metadata (Spark before 4.0 "
    "wrote none), so that no version compares them. Spark starts, and takes the operators by their number: state of "
    "one is read as that of another, or never again.",
    _OLD_QUERY,
)
NOTHING_HERE = error(
    "CKPT446 checkpoint-expected",
    "The query has run before, as `--must-exist` says, and no batch is planned here: the volume is not mounted, the "
    "path is another one, or the checkpoint was deleted. A start would read every source from its beginning.",
    "Look for the checkpoint: the volume, the path, the bucket. If it is lost, put it back from a copy. For a new "
    "query leave out `--must-exist`.",
)
OTHER_FOLDER = warning(
    "CKPT443 query-reads-another-folder",
    "A file source reads another folder than the batches before, and the latest batch has no files that Spark would "
    "refuse because of that. The query starts, and reads all files of the new folder, including any that were moved "
    "there. Files of the old folder that have not been read yet are never read.",
    "Set the option path back to the old folder, unless all files of the new one are to be read.",
)
OTHER_TOPIC = error(
    "CKPT444 query-reads-another-topic",
    "The query does not subscribe to a topic that the checkpoint has read. The next new batch fails (Partitions Set "
    "... have been deleted) and leaves an offsets file of the new topics behind. With failOnDataLoss=false it runs, "
    "and rows of the old topic that wait are never read.",
    "Subscribe to the old topics too. To give one up, first take it out of the checkpoint with `ckpt offsets set "
    "{checkpoint}`.",
)
