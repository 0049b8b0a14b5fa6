"""ckpt scan."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import ckpt
from ckpt.calls.scan import choose_inspect_options
from ckpt.calls.tried_advice import leave_out_impossible
from ckpt.errors import UsageError
from ckpt.inspection.inspection import Inspection
from ckpt.inspection.scan.scan import Scan, present_worst
from ckpt.restart.findings import Severity
from ckpt.storage.locations import name_everywhere
from ckpt.texts import mask_json, quote_path

from . import options
from .outfile import must_be_writable, replace_whole
from .render.book import BOOK
from .render.fleet import ScanReport
from .render.page import plot
from .render.prometheus import exposition, write_metrics
from .report import Output, complain, show, show_text
from .watching import bar

_CLEAR = "\x1b[H\x1b[2J"  # of the screen


class ScanOutput(StrEnum):
    """The forms of a scan."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"
    JSONL = "jsonl"
    PROMETHEUS = "prometheus"


class FailOn(StrEnum):
    """How bad a finding has to be for exit status 1."""

    WARNING = "warning"
    ERROR = "error"


def scan(
    roots: options.RootsArg,
    depth: options.DepthOption = None,
    jobs: options.JobsOption = None,
    changed_since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only checkpoints with a batch since TIME: 8h, 7d ago.")
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 at this severity or above.")] = FailOn.WARNING,
    watch: Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="Scan again every SECONDS.")] = None,
    textfile: Annotated[str | None, typer.Option(metavar="PATH", help="Also write Prometheus metrics to PATH.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save rows in FILE, or resume the scan in FILE.")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also list checkpoints without warnings or errors.")] = False,
    sources: Annotated[bool, typer.Option("--sources", help="Also ask Kafka for each query's lag.")] = False,
    source_option: options.KafkaOption = None,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Include superseded versions of pipeline flows.")
    ] = False,
    deep: options.DeepOption = False,
    names_only: options.NamesOnlyOption = False,
    spark: options.ReleaseOption = None,
    storage_option: options.StorageOption = None,
    output: Annotated[
        ScanOutput,
        typer.Option(
            "-o",
            "--output",
            metavar="FORM",
            help="table, json, jsonl, html, github, prometheus.",
            show_default=False,
        ),
    ] = ScanOutput.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Inspect every checkpoint below ROOT, the worst first.

    Only reads; starts no JVM.

    Examples:
    ckpt scan /cp s3://bucket/checkpoints
    ckpt scan s3://bucket --resume unfinished.jsonl

    Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 a ROOT could not be listed or has no checkpoint.
    """
    how = choose_inspect_options(spark or (), deep=deep, names_only=names_only)
    storage_options = options.pairs("storage_options", storage_option)
    if watch is not None and output not in (ScanOutput.TABLE, ScanOutput.JSONL):
        raise UsageError.of("{--watch} prints one document after another: use jsonl or table, not {form}", form=output)
    if watch is not None and resume is not None:
        raise UsageError.of("{--resume} is for a single scan, but {--watch} repeats scans")
    if source_option and not sources:
        raise UsageError.of("{--source-options} needs {--sources}")
    kafka = options.kafka_options("sources", source_option) if sources else None
    if textfile is not None:
        must_be_writable("textfile", textfile)
    if textfile is not None or output is not ScanOutput.TABLE:
        roots = [*map(name_everywhere, roots)]  # what is written may be read in another folder
    while True:
        with continued_by(resume), bar(quiet=quiet, of="checkpoints") as watcher:
            scan = ckpt.scan(
                roots,
                storage_options=storage_options,
                depth=depth,
                jobs=jobs,
                changed_since=changed_since,
                sources=sources,
                source_options=kafka,
                all_versions=all_versions,
                deep=deep,
                names_only=names_only,
                spark=spark or (),
                resume=resume,
                watcher=watcher,
            )
        report = ScanReport(scan, Severity(fail_on), show_all)
        if textfile is not None:
            with replace_whole(textfile) as unfinished:
                Path(unfinished).write_text(exposition(scan), encoding="utf-8")
        if output is ScanOutput.HTML:
            from ckpt.webpage.parts import SECTION  # which no other form needs

            def present(inspection: Inspection) -> str:
                where = inspection.checkpoint.uri
                tried = leave_out_impossible(inspection, where, storage_options, names_only=names_only)
                return plot(tried, SECTION)

            scan, sections = present_worst(scan, present, storage_options, kafka, how)
            report = replace(report, record=scan, sections=sections)
        _print(report, output, clear=watch is not None)
        if watch is None:
            raise typer.Exit(code=report.exit)
        time.sleep(watch)


@contextmanager
def continued_by(file: str | None) -> Iterator[None]:
    """Say of a scan that is interrupted where its rows are."""
    try:
        yield
    except KeyboardInterrupt:
        if file is not None:
            complain([f"interrupted: with --resume {quote_path(file)} the same command continues"])
        raise


def _print(report: ScanReport, output: ScanOutput, *, clear: bool) -> None:
    match output:
        case ScanOutput.JSONL:
            _print_lines(report.record, map(mask_json, report.lines()))
        case ScanOutput.PROMETHEUS:
            _print_lines(report.record, write_metrics(report.record))
        case _:
            if clear and sys.stdout.isatty():
                show_text(_CLEAR)
            show(report, Output(output))


def _print_lines(scan: Scan, lines: Iterable[str]) -> None:
    """Lines for a program; what is wrong with a root has none, and goes to standard error."""
    for line in lines:
        show_text(line)
    complain(scan.problems)
    if scan.started_over is not None:
        complain([BOOK.text("started_over", why=scan.started_over)])
