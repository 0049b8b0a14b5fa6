"""A report of a command: exit code, page and document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar, get_args

from ckpt.model import BatchAt
from ckpt.texts import mask_secrets

from .blocks import Heading, Headline, Page, change_texts, page_of
from .keys import Keys, as_json, derive

Record = TypeVar("Record")


class Exit(IntEnum):
    """How a run ends, for whoever started it."""

    OK = 0  # nothing wrong, or done
    FOUND = 1  # something is wrong, or a change is planned and not applied
    USAGE = 2  # the request makes no sense
    FAILED = 3  # could not do it: refused, failed, or reverted


_REPORTS: dict[str, type["Report[Any]"]] = {}
"""Reports, keyed by the name of the class that they show; some of them need an extra to be installed."""


def find_report(kind: type) -> type["Report[Any]"] | None:
    """Find the report of a class, or of the one that it extends, among the modules that are imported."""
    return next((_REPORTS[base.__name__] for base in kind.__mro__ if base.__name__ in _REPORTS), None)


@dataclass(frozen=True)
class Report(Generic[Record]):
    """Result of a command, in every form of output."""

    record: Record

    keys: ClassVar[type[Keys] | None] = None  # None: the fields of the record

    def __init_subclass__(cls) -> None:
        for record in get_args(next(iter(vars(cls).get("__orig_bases__", ())), None)):
            _REPORTS[getattr(record, "__name__", None) or record.__forward_arg__] = cls

    @classmethod
    def of_value(cls, value: Any) -> "Report[Any]":
        """The report of what a call has returned, without the words of a command line."""
        return cls(value)

    @property
    def exit(self) -> Exit:
        """How the run ends: as failed where the record says why it is refused, or what its problems are."""
        failed = getattr(self.record, "refused", None) or getattr(self.record, "problems", None)
        return Exit.FAILED if failed else Exit.OK

    def document(self) -> Mapping[str, Any]:
        """For programs: a mapping with the keys of ``docs/contract.md`` in their order."""
        made: Mapping[str, Any] = as_json(self.record) if self.keys is None else derive(self.keys, self.record)
        return made

    def page(self) -> Page:
        """For people: blocks, which a layout turns into text."""
        raise NotImplementedError

    def whole_page(self) -> Page:
        """The page, with how each batch that was named by a time was found."""
        page, lines = self.page(), dict.fromkeys(batch.says for batch in _find_by_time(self, 5))
        end = next((i for i, part in enumerate(page, 1) if any(isinstance(block, Headline) for block in part)), 0)
        return page_of(*page[:end], (Heading("Time", text) for text in lines if end), *page[end:])

    def comment(self) -> Page:
        """For a pull request, whose readers want the outcome."""
        return self.page()

    def html(self) -> str:
        """For a browser: a document without the secrets in it. Raises CkptError where a package is missing."""
        from .html import html  # fills templates, which no other form needs

        return html(change_texts(self.whole_page(), mask_secrets))


def _find_by_time(value: object, depth: int) -> Iterator[BatchAt]:
    """Find the batches in what a call has returned, and in its parts, that were named by a time."""
    if isinstance(value, BatchAt):
        yield value
    elif depth and is_dataclass(value):
        for field in fields(value):
            yield from _find_by_time(getattr(value, field.name), depth - 1)
    elif depth and isinstance(value, tuple):
        yield from _find_by_time(next(iter(value), None), depth - 1)
