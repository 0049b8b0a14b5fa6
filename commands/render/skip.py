"""What ``ckpt skip`` adds to the report of a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.skip.plan import SkippedSource, SkipPlan
from ckpt.model import Json

from .blocks import Block, Heading, Item, Line, more
from .change import ChangeReport
from .document import Document, grown_range
from .offsets import range_text

_FILES = 10  # how many are named


@dataclass(frozen=True, slots=True)
class SkipReport(ChangeReport[SkipPlan]):
    """What ``ckpt skip`` plans or did."""

    verb = "SKIP"
    stop = "end the driver"
    back = "the skip"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"SKIPPED {self._batch}: the query {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"{self._batch} counts as done without its rows; afterwards the query {self.afterwards}"

    @property
    def _batch(self) -> str:
        return f"batch {self.plan.skipped[0].batch}" if self.plan.skipped else "a batch"

    def own_results(self) -> Document:
        """What is left out."""
        return {
            "skipped": [
                {"batch": one.batch, "sources": [_source_entry(source) for source in one.sources]}
                for one in self.plan.skipped
            ]
        }

    def about_steps(self) -> str:
        """What they come to."""
        return self.plan.why

    def own_part(self) -> Iterator[Block]:
        """What is left out, and how it can be read."""
        if not (self.plan.skipped and self.plan.steps):
            return
        yield Heading("Skipped", "rows that this query then never reads")
        for one in self.plan.skipped:
            yield Line(f"  batch {one.batch}")
            for source in one.sources:
                yield Item(range_text(source.range), 7, f"    {source.range.index}  ")
                for name, value in source.options.items():
                    yield Item(f"{name}={value}", 11, "       reader option ")
                files = source.files or ()
                yield from (Item(file, 11, "       file ") for file in files[:_FILES])
                yield from more(len(files) - _FILES)

    def start(self) -> str:
        """What to do once it is applied."""
        return "start the query in a new driver"


def _source_entry(source: SkippedSource) -> Document:
    files: Json = None if source.files is None else list(source.files)
    return {**grown_range(source.range), "reader_option": dict(source.options), "files": files}
