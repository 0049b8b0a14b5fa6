"""DuckDB without access to anything: no files, no network, no extensions, and settings that no statement changes."""

from collections.abc import Mapping
from typing import Any

from ckpt.errors import CkptError
from ckpt.extras import install_command

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


class EngineMissing(CkptError, ImportError):
    """DuckDB is not installed."""


def import_duckdb(purpose: str) -> Any:
    """Import DuckDB. Raises EngineMissing, which begins with the purpose: ``a condition in SQL``."""
    try:
        import duckdb
    except ImportError:
        raise EngineMissing(f"{purpose} needs duckdb: {install_command('sql')}") from None
    return duckdb


def open_engine(purpose: str, settings: Mapping[str, str]) -> Any:
    """Open a database in memory, with times in UTC; ``lock`` it before a statement of somebody else is run."""
    connection = import_duckdb(purpose).connect(":memory:", config={**_SETTINGS, **settings})
    for setting in ("TimeZone = 'UTC'", "python_enable_replacements = false"):
        connection.execute(f"SET {setting}")
    return connection


def lock(connection: Any) -> None:
    """Let no statement change a setting from now on."""
    connection.execute("SET lock_configuration = true")


def first_line(error: object) -> str:
    """The first line of what DuckDB says."""
    return str(error).strip().partition("\n")[0] or "it cannot be read"
