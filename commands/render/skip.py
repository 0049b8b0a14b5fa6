"""Report of ``ckpt skip``."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from ckpt.advice import Advice, Do, Instruction, advise, call, do, words
from ckpt.changes.skip.plan import SkipPlan
from ckpt.inspection.inspection import gather_known
from ckpt.model import Json
from ckpt.restart.diagnoses.sinks import SINK_LOG_WILL_BREAK

from .blocks import Block, Heading, Item, Line, more, show_call
from .book import BOOK
from .change import ChangeReport
from .change_keys import ChangeDocument
from .inspection import ReadRangeKeys
from .keys import Keys, derive
from .page import show_ranges

_FILES = 10  # how many are named


class _Source(ReadRangeKeys):
    reader_option: Mapping[str, str]
    files: Json


class _Skipped(Keys):
    batch: int
    sources: Annotated[
        tuple[_Source, ...],
        lambda skipped: [
            derive(_Source, source.range, reader_option=source.options, files=source.files)
            for source in skipped.sources
        ],
    ]


class SkipDocument(ChangeDocument, record=SkipPlan, request="needed", result="skipped"):
    """The document of ``ckpt skip``."""

    skipped: tuple[_Skipped, ...]
    replay: tuple[()]


class SkipReport(ChangeReport[SkipPlan]):
    """A planned batch that counts as done without its rows."""

    keys = SkipDocument
    done = "SKIPPED {report.batch}: the query {report.afterwards}"
    planned = "{report.batch} is marked as done and its rows are dropped; afterwards the query {report.afterwards}"
    verb = "SKIP"
    stop = words("End the driver.")
    change = "skip"

    @property
    def batch(self) -> str:
        return f"batch {self.plan.skipped[0].batch}" if self.plan.skipped else "a batch"

    def about_steps(self) -> str:
        return self.plan.why

    def own_part(self) -> Iterator[Block]:
        if not (self.plan.skipped and self.plan.steps):
            return
        yield Heading("Skipped", "rows that this query will never read")
        for skipped in self.plan.skipped:
            yield Line(f"  batch {skipped.batch}")
            for source in skipped.sources:
                yield from show_ranges([source.range])
                for name, value in source.options.items():
                    yield Item(f"{name}={value}", 11, "       reader option ")
                files = source.files or ()
                yield from (Item(file, 11, "       file ") for file in files[:_FILES])
                yield from more(len(files) - _FILES)

    def next_if_refused(self) -> Iterator[Block]:
        look = call("inspect", self.plan.root).but(deep=bool(self.plan.inspection.checkpoint.stateful) or None)
        return show_call(look, words("Check the checkpoint's current state."))

    def start(self) -> Advice:
        start, sink = do(Do.START, words("Start the query in a new driver."), rows=self.rows), self.plan.sink
        because = (finding for forecast in self.plan.inspection.counted for finding in forecast.because)
        advised = dict.fromkeys(step for finding in because if finding.advice for step in finding.advice.steps)
        known = gather_known(self.plan.inspection.checkpoint, sink)
        begins = (s.fill(known) for s in advised if isinstance(s.do, Instruction) and s.do.do is Do.CHANGE)
        if sink is None:
            lacking = BOOK.text("lacks_batch", lost=self.plan.skipped[0].batch)
            return advise(do(Do.WAIT, lacking, rows=self.rows), *begins, start)
        fills = (finding.advice for finding in sink.findings if finding.diagnosis is SINK_LOG_WILL_BREAK)
        return sum(filter(None, fills), Advice()).fill(known) + advise(*begins, start)
