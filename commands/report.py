"""How a command reports: what each report can show, the one place that prints it."""

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NoReturn, assert_never

import typer

from ckpt.advice import Words
from ckpt.texts import escape_unprintable, mask_secrets

from .render.blocks import Page, change_texts
from .render.document import write_document
from .render.layout import for_standard_output
from .render.reports import Report


class Output(StrEnum):
    """The form of a report."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"


def emit(report: Report[Any], output: Output) -> NoReturn:
    """Print a report, the one document of this run, and end the run."""
    show(report, output)
    raise typer.Exit(code=report.exit)


def show(report: Report[Any], output: Output) -> None:
    """Print a report, without the secrets in it."""
    match output:
        case Output.TABLE:
            text = for_standard_output().text(change_texts(report.whole_page(), mask_secrets))
        case Output.JSON:
            text = write_document(report)
        case Output.HTML:
            text = report.html()
        case Output.GITHUB:
            text = _for_github(change_texts(report.comment(), mask_secrets))
        case _:
            assert_never(output)
    show_text(text)


def _for_github(page: Page) -> str:
    """The annotations of a run; its summary goes to the file that GitHub names, or below them where it names none."""
    from .render.github import annotate, markdown

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return f"{annotate(page)}\n\n{markdown(page)}".strip()
    with open(summary, "a", encoding="utf-8") as file:
        file.write(f"{markdown(page)}\n\n")
    return annotate(page)


def complain(texts: Iterable[str | Words]) -> None:
    """Lines on standard error, beside the document: what could not be looked at."""
    for text in texts:
        typer.echo(f"ckpt: {escape_unprintable(mask_secrets(str(text)))}", err=True)


def show_text(text: str) -> None:
    """Print a text that has no secrets in it, and nothing that a terminal obeys by accident."""
    typer.echo(text)
    sys.stdout.flush()
