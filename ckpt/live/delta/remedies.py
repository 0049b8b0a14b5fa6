"""Remedies for a Delta table that is not as a query left it: each was followed (``live.remedies_followed``)."""

from ckpt.restart.sinks import DROP_IDS, DROPS

_SINKS = f"Of sinks, {DROP_IDS}."

OTHER_TABLE = (
    "Check the option path: is it the table that the query reads? If so, the table was created again or replaced, and "
    "no option makes this checkpoint read it. Start the query with a new checkpoint: it reads all rows of the new "
    f"table; what the sink has of the old one stays there, and state begins empty. {_SINKS}"
)
REST_OF_FIRST_TABLE = (
    "Not all of the table as it was then has been read, and nothing shows which part has. Start the "
    f"query with a new checkpoint: it reads the whole table, also what was read already. {_SINKS}"
)


def advise_older_table(command: str | None, batch: int | None, fitting: int | None) -> str:
    """Advise on a table that ends before what was read.

    ``command`` moves the query back to the end of the table without using an id again. ``batch`` is the latest one,
    where it is planned and not committed; ``fitting`` the newest that ends before the table does.
    """
    lead = "The table was put back from an older copy, or the option path names a copy: name the right one. "
    if command is not None:
        skip = (
            "" if batch is None else f"`ckpt skip {{checkpoint}}` leaves out batch {batch}, whose rows are gone; then "
        )
        return (
            f"{lead}If the older copy is to stay, {skip}{command} shows the plan to move the query back to where this "
            "copy ends: it then reads what is written from now on. Apply it before the table is written to. Rows of "
            "the lost versions that were read stay in the sink."
        )
    if fitting is not None:
        return (
            f"{lead}If the older copy is to stay, `ckpt rewind {{checkpoint}} --to-batch {fitting} --replay new` moves "
            "the query back to where this copy ends: it then reads what is written from now on. Rows that it had read "
            "of the lost versions stay in the sink. Before the start, do what the page of that command says of the "
            f"sink: {DROPS}."
        )
    return (
        f"{lead}If the older copy is to stay, start the query with a new checkpoint: every row is read again, and a "
        f"sink that keeps the old ones has them twice; state begins empty. {_SINKS}"
    )


def advise_changed_columns(since: int | None) -> str:
    """Advise on a column with another name; ``since`` is the version of the change."""
    at = " set to the version of the change" if since is None else f"={since}"
    return (
        f"Start the query with a new checkpoint, and with the option startingVersion{at}; state begins empty. Rows "
        f"before that version that were not read are read by a batch query, or by none. {_SINKS}"
    )


def advise_missing_files(count: str) -> str:
    """Advise on files that are still to be read and gone; ``count`` is how many, in words."""
    return (
        "Put the files back from a copy, if there is one. If not: start the query in a session with the setting "
        f"spark.sql.files.ignoreMissingFiles=true, until it has read them: it leaves out {count}, silently. "
        "If VACUUM deleted them after OPTIMIZE, their rows are in other files of the table: a batch query can read "
        "them."
    )


def advise_rewritten(version: int, command: str | None) -> str:
    """Advise on a version that was written after it had been read; ``command`` reads it as it is now."""
    lead = (
        "Find out whether the table was put back from an older copy, and has been written to since. If it was, rows "
        "of the versions that the query had read under the same numbers are never read."
    )
    if command is None:
        return lead
    return (
        f"{lead} {command} shows the plan to read version {version} as it is now; earlier ones may have been written "
        "again as well."
    )
