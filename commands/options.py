"""Arguments and options that commands share, each spelled once."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from ckpt.advice import Option
from ckpt.errors import UsageError, one_line
from ckpt.restart.findings import Asked
from ckpt.storage.locations import is_in_memory
from ckpt.versions import Spark

from .report import Output


class Side(StrEnum):
    """A side of a stream-stream join."""

    LEFT = "left"
    RIGHT = "right"


def pairs(name: str, words: list[str] | None, *, once: bool = False) -> dict[str, str]:
    """``["key=value", ...]`` as a mapping; of a key given twice the last value counts, or with ``once`` none.

    Raises UsageError, also where a word has no ``=``.
    """
    values: dict[str, str] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise UsageError.of("{option}: write it as key=value", option=Option(name))  # the word may be a secret
        if once and key in values:
            raise UsageError.of("{option}: {key} is given twice", option=Option(name), key=one_line(key))
        values[key] = value
    return values


def key_values(words: list[str] | None) -> dict[str, str | None]:
    """Values by column of ``--key``; None is NULL, which a column without a value stands for.

    Raises UsageError for a column with two values.
    """
    values: dict[str, str | None] = {}
    for column, equals, value in (word.partition("=") for word in words or ()):
        if column in values:
            raise UsageError.of("{--key}: {column} is given twice", column=one_line(column))
        values[column] = value if equals else None
    return values


def kafka_options(asked_by: str, words: list[str] | None) -> dict[str, str]:
    """The options of every Kafka reader, as ``--source-options`` gives them. Raises UsageError."""
    from ckpt.live.kafka.options import SERVERS
    from ckpt.live.kind import source_options

    if SERVERS not in pairs("source_options", words, once=True):
        raise UsageError.of(
            "{option} needs the brokers: {--source-options} {servers}=HOST:PORT",
            option=Option(asked_by),
            servers=SERVERS,
        )
    return source_options([f"0.{word}" for word in words or ()])[0]


def check_stays(uri: str) -> None:
    """Raise UsageError for a URI in memory, which is gone with this process."""
    if is_in_memory(uri):
        raise UsageError(f"{one_line(uri)} disappears when ckpt ends: name a permanent folder")


def spark_version(word: str) -> Spark:
    """``4.2`` or, as a release calls itself, ``4.2.1``. Raises BadParameter."""
    for version in Spark:
        if re.fullmatch(rf"{re.escape(version)}(\.\d.*)?", word):
            return version
    known = ", ".join(f"'{version}'" for version in Spark)
    raise typer.BadParameter(f"{word!r} is not one of {known}.")


def batch_or_time(word: str) -> int | datetime:
    """``307``, or a time. Raises UsageError."""
    from ckpt.checkpoint.times import parse_time  # not at the top: few commands name a batch

    return int(word) if word.isascii() and word.isdigit() else parse_time(word)


def at(text: str) -> Any:
    """The option of a batch, which its number names, or a time at which it was the newest committed one."""
    return typer.Option(parser=batch_or_time, metavar="N|TIME", help=text)


BatchOrTime = datetime | None  # or a number: Typer takes no union of types


def spark_release(word: str) -> str:
    """Check a version or release, such as ``4.2.1``, and give it as it was typed. Raises BadParameter."""
    spark_version(word)
    return word


CheckpointArg = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A local path or a URI, such as s3://bucket/cp.")
]
OutputOption = Annotated[Output, typer.Option("-o", "--output", metavar="FORM", help="table, json, html, github.")]
StorageOption = Annotated[
    list[str] | None,
    typer.Option("--storage-options", metavar="KEY=VALUE", help="An option for the file system; repeatable."),
]
ToStorageOption = Annotated[
    list[str] | None,
    typer.Option("--to-storage-options", metavar="KEY=VALUE", help="An option for NEW's file system; repeatable."),
]
SparkOption = Annotated[
    list[Spark] | None,
    typer.Option(parser=spark_version, metavar="VERSION", help="Forecast for this version only; repeatable."),
]
ReleaseOption = Annotated[
    list[str] | None,
    typer.Option(parser=spark_release, metavar="VERSION", help="Forecast only this version; X.Y.Z adds known bugs."),
]
ProgressOption = Annotated[Asked, typer.Option(metavar="MODE", help="sync, async, both, realtime, continuous.")]
BatchesOption = Annotated[int, typer.Option(min=0, metavar="N", help="Show the newest N batches; 0 shows all.")]
SinkOption = Annotated[
    str | None,
    typer.Option(metavar="URI|KIND", help="Ask the sink, or name upsert|append|kafka|noop."),
]
SourcesOption = Annotated[bool, typer.Option("--sources", help="Also ask the sources for their current offsets.")]
ReaderOption = Annotated[
    list[str] | None,
    typer.Option("--source-options", metavar="I.KEY=VALUE", help="A reader option; secrets as @FILE or env:NAME."),
]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also show all batches, the state and what findings mean.")
]
DeepOption = Annotated[bool, typer.Option("--deep", help="Read every byte of the state.")]
NamesOnlyOption = Annotated[
    bool, typer.Option("--names-only", help="Read no state: judge files by name, size and end.")
]
JobsOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="Use N processes. Default: one per core.")]
DropKeysOption = Annotated[str | None, typer.Option(metavar="FILE", help='Drop these keys, one a line: {"user": "x"}.')]
WhereOption = Annotated[list[str] | None, typer.Option(metavar="SQL", help="Keep rows with key_user <> 'ann'.")]
FewerVersionsOption = Annotated[
    bool, typer.Option("--accept-fewer-versions", help="Accept that fewer Spark versions can start NEW.")
]
OperatorOption = Annotated[int | None, typer.Option(min=0, metavar="ID", help="Only this operator's state.")]
MasterOption = Annotated[str | None, typer.Option(metavar="URL", help="The Spark master. Default: local[*].")]
ConfOption = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable.")]
RootsArg = Annotated[
    list[str], typer.Argument(metavar="ROOT...", help="Checkpoints or parent folders, as paths or URIs.")
]
DepthOption = Annotated[int | None, typer.Option(min=0, metavar="N", help="Search N levels below ROOT. Default: all.")]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option("--source-options", metavar="KEY=VALUE", help="A reader option; secrets as @FILE or env:NAME."),
]
BatchOption = Annotated[BatchOrTime, at("As of this batch. Default: the newest.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """Options of almost every command."""

    storage_option: StorageOption = None
    output: OutputOption = Output.TABLE
    quiet: QuietOption = False

    @property
    def storage_options(self) -> dict[str, str]:
        """For the file system. Raises UsageError."""
        return pairs("storage_options", self.storage_option)


@dataclass(frozen=True, slots=True)
class NewOptions(CommonOptions):
    """Options of a command that writes a new checkpoint."""

    to_storage_option: ToStorageOption = None

    @property
    def to_storage_options(self) -> dict[str, str] | None:
        """For the file system of NEW. Raises UsageError."""
        return pairs("to_storage_options", self.to_storage_option) or None


SchemaOption = Annotated[
    str | None,
    typer.Option("--schema", "--expect", metavar="FILE", help="Schemas, if the state has none."),
]


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Options that choose a part of the state."""

    operator: OperatorOption = None
    store: Annotated[str | None, typer.Option(metavar="NAME", help="This store of a join, as Spark stores it.")] = None
    side: Annotated[Side | None, typer.Option(help="One side of a join.")] = None
    variable: Annotated[str | None, typer.Option(metavar="NAME", help="This variable of transformWithState.")] = None
    timers: Annotated[bool, typer.Option("--timers", help="The timers of transformWithState.")] = False
    schema: SchemaOption = None
