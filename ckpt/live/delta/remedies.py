"""Advice on a Delta table that is not as a query left it: each was followed (``live.remedies_followed``)."""

from ckpt.advice import CHECKPOINT, Advice, Call, Do, Name, Setting, advise, call, do, run, words
from ckpt.live.outlook import SKIP
from ckpt.restart.book import AT_NEW, OF_SINKS
from ckpt.restart.sinks import Ids, OnSinks

OTHER_TABLE = advise(
    do(Do.FIND_OUT, words("Check that the option path names the table that the query reads.")),
    do(
        Do.START,
        words(
            "If it does, the table was created again or replaced, and no option makes this checkpoint read it. Start "
            "the query with {at_new}, a new checkpoint: it reads all rows of the new table, and its state begins "
            "empty. Rows of the old table stay in the sink. {of_sinks}",
            at_new=AT_NEW,
            of_sinks=OF_SINKS,
        ),
    ),
)
REST_OF_FIRST_TABLE = advise(
    do(
        Do.START,
        words(
            "The query has read a part of the table as it was then, and nothing shows which part. Start the query with "
            "{at_new}, a new checkpoint: it reads the whole table, also rows that were read already. {of_sinks}",
            at_new=AT_NEW,
            of_sinks=OF_SINKS,
        ),
    )
)


def advise_older_table(move: Call | None, batch: int | None, fitting: int | None) -> Advice:
    """Advise on a table that ends before what was read.

    ``move`` moves the query back to the end of the table without using an id again. ``batch`` is the latest one,
    where it is planned and not committed; ``fitting`` the newest that ends before the table does.
    """
    lead = words(
        "The table was put back from an older copy, or the option path names a copy: name the right one. Only if the "
        "older copy is to stay, do the following. "
    )
    if move is not None:
        back = words(
            "Move the query back to where this copy ends: it then reads what is written from now on. Rows of the lost "
            "versions that were read stay in the sink. Apply the plan before the table is written to."
        )
        if batch is None:
            return advise(run(move, lead + back))
        skip = words("Leave out batch {batch}, whose rows are gone, and apply the plan.", batch=batch)
        return advise(run(SKIP, lead + skip), run(move, back))
    if fitting is not None:
        back = words(
            "Move the query back to where this copy ends: it then reads what is written from now on. Rows that it had "
            "read of the lost versions stay in the sink, and {sinks}. Do what the plan says of the sink before the "
            "start.",
            sinks=OnSinks(Ids.REUSED),
        )
        return advise(run(call("rewind", CHECKPOINT, to_batch=fitting, replay="new"), lead + back))
    start = words(
        "Start the query with {at_new}, a new checkpoint: every row is read again, and a sink that keeps the old ones "
        "has them twice; state begins empty. {of_sinks}",
        at_new=AT_NEW,
        of_sinks=OF_SINKS,
    )
    return advise(do(Do.START, lead + start))


def advise_changed_columns(since: int | None) -> Advice:
    """Advise on a column with another name; ``since`` is the version of the change."""
    if since is None:
        option = words("{name} set to the version of the change", name=Name("startingVersion"))
    else:
        option = words("{option}", option=Setting(f"startingVersion={since}"))
    return advise(
        do(
            Do.START,
            words(
                "Start the query with {at_new}, a new checkpoint, and with the option {option}; state begins empty. "
                "Rows before that version that were not read are read by a batch query, or by none. {of_sinks}",
                at_new=AT_NEW,
                option=option,
                of_sinks=OF_SINKS,
            ),
        )
    )


def advise_missing_files(count: str) -> Advice:
    """Advise on files that are still to be read and gone; ``count`` is how many, in words."""
    return advise(
        do(Do.PUT_BACK, words("If there is a copy of the table, put the files back from it.")).or_(
            do(
                Do.START,
                words(
                    "Without a copy, start the query in a session with the setting {setting}, until it has read them: "
                    "it leaves out {count}, silently. If VACUUM deleted them after OPTIMIZE, their rows are in other "
                    "files of the table: a batch query can read them.",
                    setting=Setting("spark.sql.files.ignoreMissingFiles=true"),
                    count=count,
                ),
            )
        )
    )


def advise_rewritten(version: int, move: Call | None) -> Advice:
    """Advise on a version that was written after it had been read; ``move`` reads it as it is now."""
    lead = words(
        "Find out whether the table was put back from an older copy, and has been written to since. If it was, rows of "
        "the versions that the query had read under the same numbers are never read."
    )
    if move is None:
        return advise(do(Do.FIND_OUT, lead))
    then = words(
        " Earlier versions may have been written again as well. To read version {version} as it is now, move the query "
        "back, and apply the plan before the start.",
        version=version,
    )
    return advise(run(move, lead + then))
