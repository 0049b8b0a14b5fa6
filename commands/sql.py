"""ckpt sql."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.tables.connect import connect, list_problems, run_sql, split_statements
from ckpt.tables.log_tables import TABLES
from ckpt.texts import escape_unprintable

from . import options
from .outfile import must_be_writable, replace_whole
from .render.document import write_object
from .render.reports import Exit
from .render.rows import AnswerReport
from .report import Output, complain, show, show_text


class SqlOutput(StrEnum):
    """The forms of an answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def sql(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="STATEMENT ROOT...",
            help="A statement (- reads standard input), then folders.",
        ),
    ],
    to: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the rows to FILE in a format other than table.")
    ] = None,
    depth: options.DepthOption = None,
    storage_option: options.StorageOption = None,
    output: Annotated[
        SqlOutput,
        typer.Option("-o", "--output", metavar="FORM", help="table, json, jsonl, csv, parquet.", show_default=False),
    ] = SqlOutput.TABLE,
) -> None:
    """Query the checkpoints below ROOT with SQL.

    Tables: checkpoints, batches, offsets, commits, sources, settings, forecasts, findings, operators, stores,
    state_files; state(checkpoint, operator, store, batch). Only reads; starts no JVM.

    Examples:
    ckpt sql "SELECT checkpoint, batch FROM batches WHERE NOT committed" /cp
    ckpt sql "FROM state('orders') WHERE key_user = 'ann'" /cp -o csv

    Exit status: 0 answered, 2 bad usage or a refused statement, 3 something could not be read.
    """
    statement, roots = (words[0], words[1:]) if len(words) > 1 else ("-", words)
    if to is None and output is SqlOutput.PARQUET:
        raise UsageError.of("{--output=parquet} needs {--to} FILE")
    if to is not None:
        if output is SqlOutput.TABLE:
            raise UsageError.of("{--to} needs {--output=json}, jsonl, csv or parquet")
        must_be_writable("to", to)
        _must_be_elsewhere(to)
    connection = connect(*roots, storage_options=options.pairs("storage_options", storage_option), depth=depth)
    if statement == "-" and to is None and sys.stdin.isatty() and sys.stdout.isatty():
        _run_shell(connection, output)
        return
    statements = split_statements(connection, sys.stdin.read()) if statement == "-" else [statement]
    if not statements:
        raise UsageError("standard input contains no statement")
    if to is not None and len(statements) > 1:
        raise UsageError.of("{--to} accepts the rows of only one statement")
    for text in statements:
        _answer(connection, run_sql(connection, text), output, to)
    problems = list_problems(connection)
    complain(problems)
    raise typer.Exit(code=Exit.FAILED if problems else Exit.OK)


def _run_shell(connection: Any, output: SqlOutput) -> None:
    """Answer what is typed, one statement after the other; one that is refused ends nothing."""
    names = {*TABLES, *(column.name for table in TABLES.values() for column in table.columns), "state"}
    known = 0
    for text in read_typed(names):
        try:
            for statement in split_statements(connection, text):
                _answer(connection, run_sql(connection, statement), output, None)
            problems = list_problems(connection)
            complain(problems[known:])
            known = len(problems)
        except CkptError as error:
            complain([str(error)])
        except KeyboardInterrupt:
            complain(["interrupted"])


def _answer(connection: Any, relation: Any, output: SqlOutput, to: str | None) -> None:
    from ckpt.tables import answers  # reads rows of state too, whose packages the help does not need

    if to is None:
        match output:
            case SqlOutput.JSONL:
                _print(answers.list_json_lines(connection, relation))
            case SqlOutput.CSV:
                _print(answers.list_csv_lines(connection, relation, escape_unprintable if sys.stdout.isatty() else str))
            case _:
                show(AnswerReport(answers.read_answer(connection, relation)), Output(output))
        return
    with replace_whole(str(Path(to).resolve())) as unfinished:
        match output:
            case SqlOutput.PARQUET:
                answers.write_parquet(connection, relation, unfinished)
            case SqlOutput.JSON:
                document = AnswerReport(answers.read_answer(connection, relation)).document()
                _write(unfinished, [write_object(document)])
            case SqlOutput.JSONL:
                _write(unfinished, answers.list_json_lines(connection, relation))
            case _:
                _write(unfinished, answers.list_csv_lines(connection, relation))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        show_text(line)


def _write(path: str, lines: Iterable[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _must_be_elsewhere(path: str) -> None:
    """Raise UsageError for a file in a checkpoint."""
    for folder in Path(path).resolve().parents:
        logs = any((folder / name).is_dir() for name in (OFFSETS, COMMITS))
        if logs or (folder / METADATA).is_file():
            raise UsageError.of(
                "{--to=}: {folder} is a checkpoint: choose a file elsewhere",
                to=one_line(path),
                folder=one_line(str(folder)),
            )


_PROMPT, _MORE = "ckpt> ", " ...> "
_ENDS = (".exit", ".quit", "exit", "quit")
_KEPT = 1_000  # statements of the history


def read_typed(words: Iterable[str]) -> Iterator[str]:
    """Yield what is typed up to a line that ends with ``;``, until the end of input or ``.exit``.

    Ctrl-C forgets what was begun. ``words`` are those that Tab completes.
    """
    lines: list[str] = []
    with _edit_lines(sorted(words)):
        while True:
            try:
                line = input(_MORE if lines else _PROMPT)
            except EOFError:
                show_text("")
                return
            except KeyboardInterrupt:
                show_text("")
                lines.clear()
                continue
            if not lines and line.strip(" ;") in _ENDS:
                return
            lines += [line] if line.strip() or lines else []
            if line.rstrip().endswith(";"):
                text = "\n".join(lines)
                lines.clear()
                yield text


@contextmanager
def _edit_lines(words: list[str]) -> Iterator[None]:
    """Complete words and keep a history while lines are read, where Python has ``readline``."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = _open_history(readline)
    readline.set_completer(lambda text, number: _complete(words, text, number))
    readline.set_completer_delims(" \t\n,;()'\"=<>")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        if history is not None:
            readline.set_history_length(_KEPT)
            with suppress(OSError):
                readline.write_history_file(history)


def _complete(words: list[str], text: str, number: int) -> str | None:
    fitting = [word for word in words if word.startswith(text.lower())]
    return fitting[number] if number < len(fitting) else None


def _open_history(readline: ModuleType) -> Path | None:
    """Read the history of earlier shells, which nobody else may read; None where there is no place for one."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "ckpt"
    file = folder / "sql_history"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        readline.read_history_file(file)
    except (OSError, RuntimeError):  # of expanduser: there is no home
        return None
    return file
