"""Diagnoses of what ``ckpt preflight`` finds in a start that is about to be tried (CKPT43x, CKPT44x, CKPT48x)."""

from ckpt.advice import (
    CHECKPOINT,
    PATH,
    UNKNOWN_ROWS,
    Advice,
    Call,
    Code,
    Do,
    Hole,
    Name,
    Option,
    Step,
    Words,
    advise,
    call,
    do,
    run,
    words,
)
from ckpt.restart.diagnoses.common import error, warning

_START_OLD = do(Do.START, words("Start the query that wrote the checkpoint."))
_HAND_OFF = call("handoff", CHECKPOINT)
_START = words(
    "Start the query that wrote the checkpoint, or the new one with a new checkpoint, whose state is empty. See where "
    "the sources of the new one must start."
)
_OLD_QUERY = run(_HAND_OFF, _START)
_TO_QUERY = call("evolve", CHECKPOINT, Hole.NEW, to=Hole.QUERY)
_FROM_QUERY = _TO_QUERY.but(from_query=Hole.OLD_QUERY)


def _evolve(what: Words, to_query: Call = _TO_QUERY) -> Step:
    return run(to_query, what, rows=UNKNOWN_ROWS, writes=True)


_WRITE = words(
    "Write a new checkpoint from which the changed query continues ({to} names its description, from {describe}).",
    to=Option("to"),
    describe=Code("ckpt.describe_query"),
)
_EVOLVE = (_evolve(_WRITE), _START_OLD)
_CARRY_OVER = words(
    "Write a new checkpoint from which the changed query continues, and see what each column of state then knows, or "
    "what cannot be carried over ({old} names the description of the query that wrote the checkpoint; without one, "
    "leave it out).",
    old=Option("from_query"),
)
_EVOLVE_STATE = (_evolve(_CARRY_OVER, _FROM_QUERY), _START_OLD)
EVOLVE_FROM_NOW_ON = advise(_evolve(_CARRY_OVER, _FROM_QUERY.but(accept_from_now_on=True)).or_(_START_OLD))
"""For a column that is new: it knows rows from now on only."""

NOT_THERE = advise(
    run(_HAND_OFF, words("The checkpoint does not have what the changed query needs. {start}", start=_START))
)
"""For a change that no command can carry over."""

READ_OTHERWISE = advise(
    do(Do.CHANGE, words("Read and compute it as before, with the same options, tables and time zone.")).or_(_OLD_QUERY)
)
"""For values that may differ from those in the state, which nothing at hand says."""

_LEAVES = words(
    "The failed start leaves a new offsets file. When the right query starts again, it runs that batch over the range "
    "in this file."
)

SECOND_DRIVER = error(
    "CKPT431 checkpoint-in-use",
    words(
        "Files of the checkpoint changed while ckpt was looking: a driver is running on it. Two drivers on one "
        "checkpoint overwrite each other's batches until one fails with CONCURRENT_STREAM_LOG_UPDATE, and may write "
        "rows twice."
    ),
    do(Do.WAIT, words("Stop the other query first, or let it run.")),
)
NUMBER_OF_SOURCES = error(
    "CKPT432 query-has-other-number-of-sources",
    words("The query and the checkpoint have different numbers of sources. The start fails before it writes anything."),
    _EVOLVE[0].or_(_START_OLD),
)
OTHER_SOURCE = error(
    "CKPT433 query-has-another-source",
    words(
        "A source of the query is of a different kind from the one at that position in the checkpoint, or the sources "
        "were reordered. Spark identifies sources by their order only. The start fails with an error that does not say "
        "so, or reads from the wrong position."
    ),
    do(Do.CHANGE, words("Put the sources of the query in the order of the checkpoint.")).or_(*_EVOLVE),
)
OTHER_OPERATORS = error(
    "CKPT434 query-has-other-stateful-operators",
    words(
        "The query and the checkpoint have different stateful operators. Spark refuses the query, or finds no state. "
        "{leaves}",
        leaves=_LEAVES,
    ),
    _evolve(
        words("{write} With {accept}, a new operator begins empty.", write=_WRITE, accept=Option("accept_from_now_on"))
    ).or_(_START_OLD),
)
KEY_SCHEMA = error(
    "CKPT435 query-has-another-state-key",
    words(
        "The key of the state has different types, or a different number or order of columns, than in the checkpoint "
        "(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE). {leaves}",
        leaves=_LEAVES,
    ),
    _EVOLVE_STATE[0].or_(_START_OLD),
)
VALUE_SCHEMA = error(
    "CKPT436 query-has-another-state-value",
    words(
        "The value of the state has different types, or a different number or order of columns, than in the checkpoint "
        "(STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE): an aggregate was added, removed or changed its type. {leaves}",
        leaves=_LEAVES,
    ),
    _EVOLVE_STATE[0].or_(_START_OLD),
)
NOT_SUPPORTED = error(
    "CKPT437 query-not-supported",
    words(
        "Spark does not support this query in this output mode, with any checkpoint. The start fails before it writes "
        "anything."
    ),
    do(Do.CHANGE, words("Choose an output mode that the query supports.")),
)
STATE_VARIABLES = error(
    "CKPT438 query-has-another-state-variable",
    words(
        "A variable, the time mode or the output mode of transformWithState differs from the checkpoint "
        "(STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE, STATE_STORE_INVALID_CONFIG_AFTER_RESTART). {leaves}",
        leaves=_LEAVES,
    ),
    do(Do.CHANGE, words("Give a variable of a different kind a new name, and keep the modes of the checkpoint.")).or_(
        _OLD_QUERY
    ),
)
REFUSED = error(
    "CKPT439 spark-cannot-plan-the-restart",
    words("ckpt had Spark plan the next batch of this query on a copy of the state's metadata, and Spark failed."),
    _OLD_QUERY,
)
_WITH_ITS_VALUE = do(Do.START, words("Start the query with the value of the checkpoint."))
WRONG_SETTING = error(
    "CKPT440 setting-does-not-fit-the-state",
    words(
        "The state can be read with only one value of a setting. The offset log does not record it, and the session "
        "has a different value. The start fails, at the latest in its first batch."
    ),
    _WITH_ITS_VALUE,
)
NEEDED_SETTING = warning(
    "CKPT441 setting-needed-and-not-seen",
    words(
        "The state can be read with only one value of a setting. The offset log does not record it, and ckpt does not "
        "know whether the session has it."
    ),
    _WITH_ITS_VALUE,
)
RENAMED = warning(
    "CKPT442 query-renamed-state",
    words(
        "Columns of the state have different names from those in the checkpoint, but the same types. Spark compares "
        "only types: it starts, and continues with the old values under the new names."
    ),
    do(
        Do.FIND_OUT,
        words(
            "Make sure that only the name changed. If the column means something else now, start with a new "
            "checkpoint, whose state is empty."
        ),
    ),
)
RENAMED_VARIABLE = warning(
    "CKPT485 query-may-rename-a-state-variable",
    words(
        "A state variable of transformWithState is gone, and the query has a new one of its kind. To Spark another "
        "name is another variable: it starts, the new one is empty, and the rows of the old one stay in the state."
    ),
    do(Do.CHANGE, words("If it is the same variable, give it its old name.")).or_(
        _evolve(
            words(
                "If it is the same variable, write a new checkpoint in which its rows have the new name (OLD and NEW "
                "are its names)."
            ),
            _TO_QUERY.but(map_column=Hole.OLD_TO_NEW),
        ),
        do(Do.START, words("If it is another variable, start the query.")),
    ),
)
LEFT_BEHIND = error(
    "CKPT445 query-leaves-state-behind",
    words(
        "The query has fewer stateful operators than the checkpoint, which has no operator metadata (Spark before 4.0 "
        "wrote none), so no version compares them. Spark starts, and matches operators by number: it reads the state "
        "of one operator as that of another, or never reads it again."
    ),
    _OLD_QUERY,
)
NOTHING_HERE = error(
    "CKPT446 checkpoint-expected",
    words(
        "{must_exist} says that the query has run before, but no batch is planned here: the volume is not mounted, the "
        "path is wrong, or the checkpoint was deleted. A start would read every source from its beginning.",
        must_exist=Option("must_exist"),
    ),
    do(
        Do.PUT_BACK,
        words(
            "Look for the checkpoint: the volume, the path, the bucket. If it is lost, put it back from a copy. For a "
            "new query, leave out {must_exist}.",
            must_exist=Option("must_exist"),
        ),
        PATH,
    ),
)
OTHER_FOLDER = warning(
    "CKPT443 query-reads-another-folder",
    words(
        "A file source reads a different folder from the batches before, and the latest batch has no files that Spark "
        "would refuse for that reason. The query starts, and reads all files of the new folder, including any that "
        "were moved there. Files of the old folder that have not been read yet are never read."
    ),
    do(
        Do.CHANGE,
        words(
            "Set the option {option} back to the old folder, unless the query should read all files of the new one.",
            option=Name("path"),
        ),
    ),
)
_SUBSCRIBE = do(Do.CHANGE, words("Subscribe to the old topics too."))
NO_TOPIC_LEFT = advise(_SUBSCRIBE)
"""For a query that subscribes to no topic of the checkpoint: not all can be removed."""


def give_up(to: str | Hole, **source: int) -> Advice:
    """Advise how a source gives up topics; ``to`` is its newest offset without them."""
    remove = call("offsets_set", CHECKPOINT, **source, to=to)
    return advise(_SUBSCRIBE.or_(run(remove, words("To give topics up, first remove them from the checkpoint."))))


OTHER_TOPIC = error(
    "CKPT444 query-reads-another-topic",
    words(
        "The query does not subscribe to a topic that the checkpoint has read. The next new batch fails (Partitions "
        "Set ... have been deleted) and leaves an offsets file of the new topics. With failOnDataLoss=false it runs, "
        "and waiting rows of the old topic are never read."
    ),
    give_up(Hole.OFFSETS),
)
OTHER_KEY = error(
    "CKPT447 query-computes-another-state-key",
    words(
        "A column of the state's key is computed from other columns than in the query that wrote the checkpoint, with "
        "other options or in another time zone, or the columns are in another order, with the same types. Spark "
        "compares only types: it starts, finds the old values under the new keys, and mixes groups, repeats or pairs."
    ),
    do(Do.CHANGE, words("Compute the key as before, with its columns in the same order.")).or_(*_EVOLVE_STATE),
)
OTHER_VALUE = error(
    "CKPT448 query-computes-another-state-value",
    words(
        "An aggregate, or a column that a join keeps, is another one than in the query that wrote the checkpoint, is "
        "read with other options, from another table or in another time zone, or they are in another order, with the "
        "same types. Spark compares only types: it starts, and continues the old values as if they were those of the "
        "new one."
    ),
    do(Do.CHANGE, words("Put the aggregates and columns in the order of the old query.")).or_(*_EVOLVE_STATE),
)
OTHER_WINDOW = error(
    "CKPT449 query-has-another-window",
    words(
        "The window, or the gap of sessions, differs from the query that wrote the checkpoint. Spark starts: rows go "
        "into new windows, to which the rows that the old ones counted do not come, and old sessions keep their ends."
    ),
    do(Do.CHANGE, words("Give the window its old times.")).or_(*_EVOLVE_STATE),
)
OTHER_ROWS = warning(
    "CKPT481 query-counts-other-rows",
    words(
        "A filter, a limit, a watermark, the condition of a join, a joined table, an option that decides which rows "
        "are read, or a setting of the session differs from the query that wrote the checkpoint. Spark starts, and "
        "applies it to rows from now on; the state has what the old query put there."
    ),
    do(Do.FIND_OUT, words("Make sure that it should hold from now on only.")).or_(
        do(Do.START, words("If it should hold for all rows, start with a new checkpoint, whose state is empty."))
    ),
)
RENAMED_SOURCE = error(
    "CKPT482 query-renames-a-source",
    words(
        "A named source has another name than in the checkpoint. To Spark the new name is a new source: it starts, and "
        "reads again all that the old one has read."
    ),
    do(Do.CHANGE, words("Give the source its old name.")).or_(*_EVOLVE),
)
SOURCE_AGAIN = error(
    "CKPT483 query-has-a-source-again",
    words(
        "A named source was in the query, then left out for some batches, and is there again. Spark kept no offset of "
        "it: it starts, and reads again all that it had read, files of its old log twice."
    ),
    do(Do.CHANGE, words("Leave the source out.")).or_(*_EVOLVE),
)
OTHER_NAMING = error(
    "CKPT484 query-names-its-sources",
    words(
        "Either the query names its sources and the checkpoint does not, or the other way round. The start fails, or "
        "reads everything again."
    ),
    do(Do.CHANGE, words("Name the sources as the query that wrote the checkpoint did.")).or_(*_EVOLVE),
)
QUERY_NOT_COMPARED = warning(
    "CKPT270 query-not-compared",
    words(
        "The query was not compared with the checkpoint: whether it has the sources, operators and state that the "
        "checkpoint has is unknown. Spark compares some of that itself, at the start."
    ),
    do(
        Do.CHANGE,
        words(
            "Build the query in a classic session ({session}), and call {preflight} there.",
            session=Code("SparkSession.builder.master(...)"),
            preflight=Code("ckpt.preflight"),
        ),
    ),
)
