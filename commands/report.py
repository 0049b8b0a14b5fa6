"""How a command reports: what each report can show, the one place that prints it."""

import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import NoReturn, Protocol, assert_never

import typer

from ckpt.secrets import masked, masked_json

from .exits import Exit
from .render.blocks import Page
from .render.layout import for_standard_output


class Output(StrEnum):
    """The form of a report."""

    TABLE = "table"
    JSON = "json"


class Report(Protocol):
    """What came of a command, in every form that it can be asked for."""

    @property
    def exit(self) -> Exit:
        """How the run ends."""

    def page(self) -> Page:
        """For people: blocks, which a layout turns into text."""

    def document(self) -> Mapping[str, object]:
        """For programs: what JSON can hold, keys in the order of ``docs/contract.md``."""


def emit(report: Report, output: Output) -> NoReturn:
    """Print a report, the one document of this run, without the secrets in it, and end the run."""
    match output:
        case Output.TABLE:
            text = masked(for_standard_output().text(report.page()))
        case Output.JSON:
            text = masked_json(_json(report.document()))
        case _:
            assert_never(output)
    typer.echo(text)
    sys.stdout.flush()
    raise typer.Exit(code=report.exit)


def _json(document: Mapping[str, object]) -> str:
    """A document as JSON; a number of a checkpoint that no double holds, such as 1e999, becomes text."""
    try:
        return json.dumps(document, indent=2, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(document), parse_constant=str), indent=2)
