"""Diagnoses of what ``ckpt preflight`` finds in a start that is about to be tried (CKPT43x, CKPT44x, CKPT48x)."""

from ckpt.restart.diagnoses.common import error, warning

_OLD_QUERY = (
    "Start the query that wrote the checkpoint, or start the new one with a new checkpoint, whose state is empty: "
    "`ckpt handoff {checkpoint}` says where its sources must start."
)
_EVOLVE = (
    "`ckpt evolve {checkpoint} NEW --to query.json` writes a new checkpoint from which the changed query continues "
    "(query.json is its description, from `ckpt.describe_query`). Or start the query that wrote the checkpoint."
)
_CARRIES_OVER = (
    " writes a new checkpoint from which the changed query continues, and says what each column of state then knows, "
    "or what cannot be carried over (old.json is the description of the query that wrote the checkpoint; without one "
    "leave out `--from-query`). Or start the query that wrote the checkpoint."
)
EVOLVE_STATE = "`ckpt evolve {checkpoint} NEW --to query.json --from-query old.json`" + _CARRIES_OVER
EVOLVE_FROM_NOW_ON = (
    "`ckpt evolve {checkpoint} NEW --to query.json --from-query old.json --accept-from-now-on`" + _CARRIES_OVER
)
"""For a column that is new: it knows rows from now on only."""

NOT_THERE = f"The checkpoint does not have what the changed query needs. {_OLD_QUERY}"
"""For a change that no command can carry over."""

READ_OTHERWISE = f"Read and compute it as before, with the same options, tables and time zone. Otherwise: {_OLD_QUERY}"
"""For values that may differ from those in the state, which nothing at hand says."""

_LEAVES = (
    "The failed start leaves a new offsets file. When the right query starts again, it runs that batch over the "
    "range in this file."
)

SECOND_DRIVER = error(
    "CKPT431 checkpoint-in-use",
    "Files of the checkpoint changed while ckpt was looking: a driver is running on it. Two drivers on one checkpoint "
    "overwrite each other's batches until one fails with CONCURRENT_STREAM_LOG_UPDATE, and may write rows twice.",
    "Stop the other query first, or let it run.",
)
NUMBER_OF_SOURCES = error(
    "CKPT432 query-has-other-number-of-sources",
    "The query and the checkpoint have different numbers of sources. The start fails before it writes anything.",
    _EVOLVE,
)
OTHER_SOURCE = error(
    "CKPT433 query-has-another-source",
    "A source of the query is of a different kind from the one at that position in the checkpoint, or the sources "
    "were reordered. Spark identifies sources by their order only. The start fails with an error that does not say "
    "so, or reads from the wrong position.",
    f"Put the sources of the query in the order of the checkpoint. Otherwise: {_EVOLVE}",
)
OTHER_OPERATORS = error(
    "CKPT434 query-has-other-stateful-operators",
    "The query and the checkpoint have different stateful operators. Spark refuses the query, or finds no state. "
    f"{_LEAVES}",
    f"{_EVOLVE} With `--accept-from-now-on`, an operator that is new begins empty.",
)
KEY_SCHEMA = error(
    "CKPT435 query-has-another-state-key",
    "The key of the state has different types, or a different number or order of columns, than in the checkpoint "
    f"(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE). {_LEAVES}",
    EVOLVE_STATE,
)
VALUE_SCHEMA = error(
    "CKPT436 query-has-another-state-value",
    "The value of the state has different types, or a different number or order of columns, than in the checkpoint "
    f"(STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE): an aggregate was added, removed or changed its type. {_LEAVES}",
    EVOLVE_STATE,
)
NOT_SUPPORTED = error(
    "CKPT437 query-not-supported",
    "Spark does not support this query in this output mode, with any checkpoint. The start fails before it writes "
    "anything.",
    "Choose an output mode that the query supports.",
)
STATE_VARIABLES = error(
    "CKPT438 query-has-another-state-variable",
    "A variable, the time mode or the output mode of transformWithState differs from the checkpoint "
    f"(STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE, STATE_STORE_INVALID_CONFIG_AFTER_RESTART). {_LEAVES}",
    f"Give a variable of a different kind a new name, and keep the modes of the checkpoint. Otherwise: {_OLD_QUERY}",
)
REFUSED = error(
    "CKPT439 spark-cannot-plan-the-restart",
    "ckpt had Spark plan the next batch of this query on a copy of the state's metadata, and Spark failed.",
    _OLD_QUERY,
)
WRONG_SETTING = error(
    "CKPT440 setting-does-not-fit-the-state",
    "The state can be read with only one value of a setting. The offset log does not record it, and the session has "
    "a different value. The start fails, at the latest in its first batch.",
    "Start the query with the value of the checkpoint.",
)
NEEDED_SETTING = warning(
    "CKPT441 setting-needed-and-not-seen",
    "The state can be read with only one value of a setting. The offset log does not record it, and ckpt does not "
    "know whether the session has it.",
    "Start the query with the value of the checkpoint.",
)
RENAMED = warning(
    "CKPT442 query-renamed-state",
    "Columns of the state have different names from those in the checkpoint, but the same types. Spark compares only "
    "types: it starts, and continues with the old values under the new names.",
    "Make sure that only the name changed. If the column means something else now, start with a new checkpoint, "
    "whose state is empty.",
)
RENAMED_VARIABLE = warning(
    "CKPT485 query-may-rename-a-state-variable",
    "A state variable of transformWithState is gone, and the query has a new one of its kind. To Spark another name "
    "is another variable: it starts, the new one is empty, and the rows of the old one stay in the state.",
    "If it is the same variable, give it its old name. Or `ckpt evolve {checkpoint} NEW --to query.json --map-column "
    "OLD=NEW`, with both names, writes a new checkpoint in which its rows have the new name. If it is another "
    "variable, start.",
)
LEFT_BEHIND = error(
    "CKPT445 query-leaves-state-behind",
    "The query has fewer stateful operators than the checkpoint, which has no operator metadata (Spark before 4.0 "
    "wrote none), so no version compares them. Spark starts, and matches operators by number: it reads the state of "
    "one operator as that of another, or never reads it again.",
    _OLD_QUERY,
)
NOTHING_HERE = error(
    "CKPT446 checkpoint-expected",
    "`--must-exist` says that the query has run before, but no batch is planned here: the volume is not mounted, the "
    "path is wrong, or the checkpoint was deleted. A start would read every source from its beginning.",
    "Look for the checkpoint: the volume, the path, the bucket. If it is lost, put it back from a copy. For a new "
    "query leave out `--must-exist`.",
)
OTHER_FOLDER = warning(
    "CKPT443 query-reads-another-folder",
    "A file source reads a different folder from the batches before, and the latest batch has no files that Spark "
    "would refuse for that reason. The query starts, and reads all files of the new folder, including any that were "
    "moved there. Files of the old folder that have not been read yet are never read.",
    "Set the option path back to the old folder, unless the query should read all files of the new one.",
)
OTHER_TOPIC = error(
    "CKPT444 query-reads-another-topic",
    "The query does not subscribe to a topic that the checkpoint has read. The next new batch fails (Partitions Set "
    "... have been deleted) and leaves an offsets file of the new topics behind. With failOnDataLoss=false it runs, "
    "and waiting rows of the old topic are never read.",
    "Subscribe to the old topics too. To give one up, first remove it from the checkpoint with `ckpt offsets set "
    "{checkpoint}`.",
)
OTHER_KEY = error(
    "CKPT447 query-computes-another-state-key",
    "A column of the state's key is computed from other columns than in the query that wrote the checkpoint, with "
    "other options or in another time zone, or the columns are in another order, with the same types. Spark compares "
    "only types: it starts, finds the old values under the new keys, and mixes groups, repeats or pairs.",
    f"Compute the key as before, with its columns in the same order. Otherwise: {EVOLVE_STATE}",
)
OTHER_VALUE = error(
    "CKPT448 query-computes-another-state-value",
    "An aggregate, or a column that a join keeps, is another one than in the query that wrote the checkpoint, is read "
    "with other options, from another table or in another time zone, or they are in another order, with the same "
    "types. Spark compares only types: it starts, and continues the old values as if they were those of the new one.",
    f"Put the aggregates and columns in the order of the old query. Otherwise: {EVOLVE_STATE}",
)
OTHER_WINDOW = error(
    "CKPT449 query-has-another-window",
    "The window, or the gap of sessions, differs from the query that wrote the checkpoint. Spark starts: rows go into "
    "new windows, to which the rows that the old ones counted do not come, and old sessions keep their ends.",
    f"Give the window its old times. Otherwise: {EVOLVE_STATE}",
)
OTHER_ROWS = warning(
    "CKPT481 query-counts-other-rows",
    "A filter, a limit, a watermark, the condition of a join, a joined table, an option that decides which rows are "
    "read, or a setting of the session differs from the query that wrote the checkpoint. Spark starts, and applies it "
    "to rows from now on; the state has what the old query put there.",
    "Make sure that it should hold from now on only. Otherwise start with a new checkpoint, whose state is empty.",
)
RENAMED_SOURCE = error(
    "CKPT482 query-renames-a-source",
    "A named source has another name than in the checkpoint. To Spark the new name is a new source: it starts, and "
    "reads again all that the old one has read.",
    f"Give the source its old name. Otherwise: {_EVOLVE}",
)
SOURCE_AGAIN = error(
    "CKPT483 query-has-a-source-again",
    "A named source was in the query, then left out for some batches, and is there again. Spark kept no offset of it: "
    "it starts, and reads again all that it had read, files of its old log twice.",
    f"Leave the source out. Otherwise: {_EVOLVE}",
)
OTHER_NAMING = error(
    "CKPT484 query-names-its-sources",
    "Either the query names its sources and the checkpoint does not, or the other way round. The start fails, or reads "
    "everything again.",
    f"Name the sources as the query that wrote the checkpoint did. Otherwise: {_EVOLVE}",
)
QUERY_NOT_COMPARED = warning(
    "CKPT270 query-not-compared",
    "The query was not compared with the checkpoint: whether it has the sources, operators and state that the "
    "checkpoint has is unknown. Spark compares some of that itself, at the start.",
    "Build the query in a classic session (`SparkSession.builder.master(...)`), and call `ckpt.preflight` there.",
)
