"""The keys that every JSON document has."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from ckpt.advice import Do, RowCost, Step
from ckpt.advice.steps import flatten, sentence
from ckpt.texts import mask_json
from ckpt.versions import __version__

from .blocks import Next
from .keys import Keys, as_json, derive, itself, of
from .reports import Report

SCHEMA = 1
Document = Mapping[str, Any]
"""A document by its keys."""


class ToolKeys(Keys):
    """The program that wrote a document."""

    version: Annotated[str, lambda _: __version__]
    schema: Annotated[int, lambda _: SCHEMA]


def _say(step: Step) -> str:
    """Return the sentences of a step; with the command, where ``command`` is null."""
    return str(step.what if step.words is not None else sentence(replace(step, before=())))


class NextKeys(Keys):
    """One step, as the end of the page says it."""

    command: Annotated[tuple[str, ...] | None, of("words")]
    do: Annotated[Do | Literal["run"], lambda step: "run" if step.call is not None else step.do.do]
    paths: Annotated[
        tuple[str, ...],
        lambda step: () if step.call is not None else tuple(path for path in step.do.paths if isinstance(path, str)),
    ]
    what: Annotated[str, _say]
    rows: Annotated[RowCost, of("rows.cost")]
    writes: bool
    before: Annotated[tuple[str, ...], lambda step: tuple(map(str, step.before))]
    stop: bool


class DocumentKeys(Keys):
    """Keys of every document."""

    ckpt: Annotated[ToolKeys, itself]
    next: Annotated[tuple[NextKeys, ...], lambda _: ()]


def write_document(report: Report[Any]) -> str:
    """The JSON of a report, without the secrets in it; its last key has the steps with which its page ends."""
    document, page = report.document(), report.page()
    steps = [step for part in page for block in part if isinstance(block, Next) for step in flatten(block.steps)]
    values = {key: value for key, value in document.items() if key != "next"}
    return write_object({**values, "next": [derive(NextKeys, step) for step in steps]} if "ckpt" in values else values)


def write_object(document: object) -> str:
    """A document as JSON without secrets; a number of a checkpoint that no double holds, such as 1e999, is text."""
    try:
        text = json.dumps(document, indent=2, allow_nan=False, default=as_json)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(document, default=as_json), parse_constant=str), indent=2)
    return mask_json(text)
