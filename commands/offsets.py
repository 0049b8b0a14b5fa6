"""ckpt offsets: a group of commands about the positions of a query's sources."""

import time
from functools import partial
from typing import Annotated, Any

import typer

from ckpt.advice import call
from ckpt.changes.offsets.commit import offsets_commit
from ckpt.changes.offsets.exchange import offsets_export, offsets_import, offsets_show
from ckpt.changes.offsets.move import offsets_move
from ckpt.changes.offsets.plan import offsets_set
from ckpt.errors import CkptError, UsageError
from ckpt.live.kafka.options import SERVERS
from ckpt.live.kind import naming, source_options
from ckpt.storage.local import read_text

from . import change_options, options
from .help import CommandGroup
from .render.offsets import OffsetsCommitReport, OffsetsExportReport, OffsetsReport, PositionsReport
from .report import Output, complain, emit, show as show_report
from .watching import bar, interruptible

SourceOption = Annotated[int | None, typer.Option(min=0, metavar="I", help="The source, if there are several.")]
TopicOption = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="A renamed topic; repeatable.")]
ExpectBatchOption = Annotated[
    int | None, typer.Option("--expect-batch", min=0, metavar="N", help="Refuse if N is not the latest batch.")
]


def show(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    batch: Annotated[options.BatchOrTime, options.at("Show this batch. Default: the newest.")] = None,
) -> None:
    """Show what a batch reads, and how to continue after it.

    Only reads; starts no JVM.

    Examples:
    ckpt offsets show /cp/orders
    ckpt offsets show /cp/orders --batch 307

    Exit status: 0 shown, 2 bad usage, 3 there is no such batch, or it cannot be read.
    """
    positions = offsets_show(checkpoint, storage_options=common.storage_options, batch=batch)
    emit(PositionsReport(positions), common.output)


def set_command(
    checkpoint: options.CheckpointArg,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
    source: SourceOption = None,
    to: Annotated[
        str | None, typer.Option(metavar="JSON|PLACE", help="An offset, @FILE, earliest, latest, a time, -2h.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC[/PARTITION]", help="With PLACE: move only this part; repeatable.")
    ] = None,
    shift: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC/PARTITION=±N", help="Move a Kafka partition; repeatable.")
    ] = None,
    expect_batch: ExpectBatchOption = None,
    spark: options.SparkOption = None,
    sink: options.SinkOption = None,
    source_option: options.ReaderOption = None,
) -> None:
    """Change where the next batch starts reading.

    Moving forward skips rows; moving back reads rows again. Prints a plan; changes nothing without --apply. For a
    PLACE it asks the source, which --source-options name.

    Examples:
    ckpt offsets set /cp/orders --to '{"orders":{"0":0,"1":0}}'
    ckpt offsets set /cp/orders --to -2h --source-options 0.kafka.bootstrap.servers=broker:9092

    Exit status: 0 nothing to do, or done; 1 there is something to do; 2 bad usage; 3 could not do it.
    """
    typed = call("offsets_set").but(source=source, to=to) if to and to.startswith("@") else None
    change.run(
        offsets_set,
        partial(OffsetsReport, typed=typed),
        checkpoint,
        of_plan=("source", "to", "only", "shift", "expect_batch", "sink"),
        accepted=accepted,
        source=source,
        to=None if to is None else _read(to),
        only=only or (),
        shift=shift or (),
        expect_batch=expect_batch,
        spark=spark or (),
        sink=sink,
        source_options=source_options(source_option or ()),
    )


def export_command(
    checkpoint: options.CheckpointArg,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.JSON,
    quiet: options.QuietOption = False,
) -> None:
    """Print the offsets of the newest committed batch, for `offsets import`.

    Only reads; starts no JVM.

    Examples:
    ckpt offsets export /cp/orders > offsets.json
    ckpt offsets export s3://bucket/orders > offsets.json

    Exit status: 0 printed, 2 bad usage, 3 no batch is committed, or it cannot be read.
    """
    positions = offsets_export(checkpoint, storage_options=options.pairs("storage_options", storage_option))
    if positions.refused:
        raise CkptError(f"{checkpoint}: nothing to export: {positions.refused}")
    complain(positions.warnings)
    emit(OffsetsExportReport(positions), output)


def import_command(
    checkpoint: options.CheckpointArg,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A document from `offsets export`.")] = None,
    topic: TopicOption = None,
    expect_batch: ExpectBatchOption = None,
    spark: options.SparkOption = None,
) -> None:
    """Start the next batch at the offsets in FILE.

    For example, when a topic moved to another cluster. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt offsets import /cp/orders offsets.json
    ckpt offsets import /cp/orders offsets.json --topic orders=orders-v2 --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do; 2 bad usage; 3 could not do it.
    """
    of_plan = {"FILE": file, "topic": topic, "expect_batch": expect_batch}
    plan, receipt = offsets_import(
        checkpoint,
        None if file is None else _read(f"@{file}"),
        storage_options=change.storage_options,
        topic=options.pairs("topic", topic, once=True),
        expect_batch=expect_batch,
        spark=spark or (),
        **change.how(of_plan, accepted),
    )
    typed = call("offsets_import", *filter(None, (file,))).but(topic=tuple(topic) if topic else None)
    emit(OffsetsReport(plan, receipt, typed, backup=change.backup), change.output)


def move(
    checkpoint: options.CheckpointArg,
    change: change_options.ChangeOptions,
    source: SourceOption = None,
    from_options: Annotated[
        list[str] | None,
        typer.Option("--from-options", "--from", metavar="K=V", help="Old cluster: bootstrap=HOST:PORT."),
    ] = None,
    to_options: Annotated[
        list[str] | None,
        typer.Option("--to-options", "--to", metavar="K=V", help="New cluster; secrets as @FILE, env:NAME."),
    ] = None,
    topic: TopicOption = None,
    expect_batch: ExpectBatchOption = None,
    spark: options.SparkOption = None,
) -> None:
    """Continue on another Kafka cluster after the last record read.

    Finds the offsets by comparing records of both clusters, and refuses if any is not exact. Prints a plan; changes
    nothing without --apply.

    Examples:
    ckpt offsets move /cp/orders --from bootstrap=old:9092 --to bootstrap=new:9092
    ckpt offsets move /cp/orders --from bootstrap=old:9092 --to bootstrap=new:9092 --topic orders=old.orders --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do; 2 bad usage; 3 could not do it.
    """
    typed: dict[str, Any] = {"source": source, "from_options": from_options, "to_options": to_options, "topic": topic}
    change.run(
        offsets_move,
        partial(OffsetsReport, typed=call("offsets_move").but(**typed)),
        checkpoint,
        of_plan=(*typed, "expect_batch"),
        source=source,
        from_options=_reader_options("from_options", from_options),
        to_options=_reader_options("to_options", to_options),
        topic=options.pairs("topic", topic, once=True),
        expect_batch=expect_batch,
        spark=spark or (),
    )


def commit(
    roots: options.RootsArg,
    common: options.CommonOptions,
    group: Annotated[str, typer.Option(metavar="PREFIX", help="Group name: PREFIX + checkpoint name.")],
    source_option: options.KafkaOption = None,
    watch: Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="Commit again every SECONDS.")] = None,
    depth: options.DepthOption = None,
    jobs: options.JobsOption = None,
) -> None:
    """Commit the offsets of queries to Kafka, for tools that show lag.

    Each checkpoint gets its own consumer group; a group that somebody else uses is refused. Queries do not read
    groups. Checkpoints are only read; needs --source-options kafka.bootstrap.servers=HOST:PORT.

    Examples:
    ckpt offsets commit /cp --group lag- --source-options kafka.bootstrap.servers=broker:9092
    ckpt offsets commit /cp --group lag- --source-options kafka.bootstrap.servers=broker:9092 --watch 60

    Exit status: 0 committed, 2 bad usage, 3 something was not committed.
    """
    storage_options = common.storage_options
    if watch is not None and common.output is not Output.TABLE:
        raise UsageError.of("{--watch} prints one document after another: use table, not {form}", form=common.output)
    kafka = options.kafka_options("group", source_option)
    while True:
        with interruptible(), bar(quiet=common.quiet, of="checkpoints") as watcher:
            done = offsets_commit(
                roots,
                group=group,
                source_options=kafka,
                storage_options=storage_options,
                depth=depth,
                jobs=jobs,
                watcher=watcher,
            )
        if watch is None:
            emit(OffsetsCommitReport(done), common.output)
        show_report(OffsetsCommitReport(done), common.output)
        time.sleep(watch)


def _reader_options(name: str, words: list[str] | None) -> dict[str, str]:
    """The options of a reader, with the secrets that they name; `bootstrap` names its brokers. Raises UsageError."""
    named = options.pairs(name, words, once=True)
    full = {SERVERS if key == "bootstrap" else key: value for key, value in named.items()}
    with naming(name):
        return source_options([f"0.{key}={value}" for key, value in full.items()]).get(0, {})


def _read(text: str) -> str:
    """Text as typed, or the content of the file that `@FILE` names. Raises UsageError."""
    if not text.startswith("@"):
        return text
    try:
        return read_text(text[1:])
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{text[1:]} cannot be read: {reason}") from error


offsets = CommandGroup(
    "Change the next batch's start or topic; show lag.",
    {
        "show": show,
        "set": set_command,
        "export": export_command,
        "import": import_command,
        "move": move,
        "commit": commit,
    },
)
