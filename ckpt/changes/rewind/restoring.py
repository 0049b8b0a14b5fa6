"""Takes a table back, through ``deltalake`` or ``pyiceberg``: if its newest version is the one that was read.

Nobody can slip in between that look and the commit: delta-rs creates the file of the next version only if it is not
there, on S3 by a conditional put; an Iceberg catalog commits only if its current snapshot is still that one.
"""

from collections.abc import Mapping

from ckpt.errors import StorageError, UsageError
from ckpt.extras import install_command
from ckpt.live.sink.iceberg_catalog import is_in_catalog, roll_back
from ckpt.live.sink.records import SinkKind
from ckpt.live.sink.versions import SinkVersion
from ckpt.storage.delta_rs import spell_for_delta_rs
from ckpt.storage.errors import shorten_error


def find_obstacle(table: SinkVersion, options: Mapping[str, str]) -> str | None:
    """Find why ckpt cannot take a table back; None if it can try.

    ``options`` are for the storage of the table; the text is continued by what else can be done.
    """
    if table.log.kind is not SinkKind.DELTA:
        if is_in_catalog(table.log.uri):
            return None
        return "a place does not say which catalog has the table: name it as iceberg://CATALOG/NAMESPACE.TABLE, or"
    try:
        spell_for_delta_rs(table.log.uri, options)
    except (StorageError, UsageError) as error:
        return f"{error}:"
    return None


def restore_table(table: SinkVersion, options: Mapping[str, str]) -> None:
    """Restore a Delta table, or roll an Iceberg table back, if its newest version is the one that was read.

    Raises StorageError: it is not, files of that version are gone, or the library is not there or cannot.
    """
    if is_in_catalog(table.log.uri):
        roll_back(table.log.uri, table.newest, table.number)
        return
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise StorageError(f"to restore a table one more package is needed: {install_command('deltalake')}") from None
    path, spelled = spell_for_delta_rs(table.log.uri, options)
    try:
        opened = DeltaTable(path, storage_options=spelled)
        if opened.version() != table.newest:
            raise StorageError(f"the table has version {opened.version()} by now, and {table.newest} was the newest")
        opened.restore(table.number)  # fails if anybody has committed since it was opened
    except (DeltaError, OSError, ValueError) as error:
        why = f"the table cannot be restored ({shorten_error(error)})"
        raise StorageError(f"{why}; {table.restore_first}") from error
