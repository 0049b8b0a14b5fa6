"""Arguments and options that commands share, each spelled once."""

import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from ckpt.errors import UsageError, one_line
from ckpt.restart.findings import Asked
from ckpt.storage.locations import is_in_memory
from ckpt.versions import Spark

from .report import Output


class Side(StrEnum):
    """A side of a stream-stream join."""

    LEFT = "left"
    RIGHT = "right"


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for each field of the dataclasses among its parameters; all are passed by name."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            fields = get_type_hints(groups[name], include_extras=True)
            parameters += (
                field.replace(annotation=fields[field.name], kind=Parameter.KEYWORD_ONLY)
                for field in signature(groups[name]).parameters.values()
            )
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def flat(**arguments: Any) -> None:
        made = {
            name: kind(**{word: arguments.pop(word) for word in signature(kind).parameters})
            for name, kind in groups.items()
        }
        command(**arguments, **made)

    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer looks at
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def pairs(option: str, words: list[str] | None, *, once: bool = False) -> dict[str, str]:
    """``["key=value", ...]`` as a mapping; of a key given twice the last value counts, or with ``once`` none.

    Raises UsageError, also where a word has no ``=``.
    """
    values: dict[str, str] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise UsageError(f"{option}: write it as key=value")  # the word may be a secret
        if once and key in values:
            raise UsageError(f"{option}: {one_line(key)} is given twice")
        values[key] = value
    return values


def kafka_options(asked_by: str, words: list[str] | None) -> dict[str, str]:
    """The options of every Kafka reader, as ``--source-option`` gives them. Raises UsageError."""
    from ckpt.live.kafka.options import SERVERS
    from ckpt.live.kind import source_options

    if SERVERS not in pairs("--source-option", words, once=True):
        raise UsageError(f"{asked_by}: name the brokers: --source-option {SERVERS}=HOST:PORT")
    return source_options([f"0.{word}" for word in words or ()])[0]


def check_stays(uri: str) -> None:
    """Raise UsageError for a URI in memory, which is gone with this process."""
    if is_in_memory(uri):
        raise UsageError(f"{one_line(uri)} is gone when ckpt ends: name a folder that stays")


def spark_version(word: str) -> Spark:
    """``4.2`` or, as a release calls itself, ``4.2.1``. Raises BadParameter."""
    for version in Spark:
        if re.fullmatch(rf"{re.escape(version)}(\.\d.*)?", word):
            return version
    known = ", ".join(f"'{version}'" for version in Spark)
    raise typer.BadParameter(f"{word!r} is not one of {known}.")


CheckpointArg = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A local path, or a URI: s3://bucket/checkpoint.")
]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="The output format.")]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="An option of the file system; repeatable.",
    ),
]
SparkOption = Annotated[
    list[Spark] | None,
    typer.Option(
        "--spark",
        parser=spark_version,
        metavar="VERSION",
        help="Forecast for this version only; repeatable.",
    ),
]
ProgressOption = Annotated[Asked, typer.Option("--progress", help="Progress tracking of the start.")]
BatchesOption = Annotated[
    int,
    typer.Option("--batches", min=0, metavar="N", help="Show the newest N batches; 0: all."),
]
SinkOption = Annotated[
    str | None,
    typer.Option(
        "--sink",
        metavar="URI",
        help="Also read the sink: Delta, Iceberg, file sink.",
    ),
]
SourcesOption = Annotated[
    bool,
    typer.Option("--sources", help="Also ask the sources what they have now."),
]
ReaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="I.KEY=VALUE",
        help="A reader option; @FILE, env:NAME: a secret.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", help="Use N processes. Default: one per core."),
]
OperatorOption = Annotated[
    int | None,
    typer.Option("--operator", min=0, metavar="ID", help="The state of this operator."),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark master. Default: local[*]."),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting; repeatable."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Options that choose a part of the state."""

    operator: OperatorOption = None
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="NAME", help="This store of a join, as Spark keeps it."),
    ] = None
    side: Annotated[Side | None, typer.Option("--side", help="One side of a join.")] = None
    variable: Annotated[
        str | None,
        typer.Option("--variable", metavar="NAME", help="This variable of transformWithState."),
    ] = None
    timers: Annotated[bool, typer.Option("--timers", help="The timers of transformWithState.")] = False
