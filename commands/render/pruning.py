"""Report of ``ckpt prune``."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.advice import Advice, Do, advise, do, words
from ckpt.advice.calls import Value
from ckpt.changes.prune.plan import Pruned, PrunePlan, PruneReason
from ckpt.changes.steps import FileStep, sidecar
from ckpt.texts import plural, size

from .blocks import Block, Heading, Table
from .book import BOOK
from .change import ChangeReport
from .change_keys import ChangeDocument, RemovalKeys, count_bytes
from .keys import Keys


def _find_steps(plan: PrunePlan, pruned: Pruned) -> list[FileStep]:
    wanted = {*pruned.paths, *map(sidecar, pruned.paths)}
    return [step for step in plan.steps if step.path in wanted]


class _Pruned(Keys):
    kind: PruneReason
    files: int
    bytes: int


def _derive_pruned(plan: PrunePlan) -> list[dict[str, object]]:
    steps_by_kind = [(pruned.kind, _find_steps(plan, pruned)) for pruned in plan.pruned]
    return [{"kind": kind, "files": len(steps), "bytes": sum(map(count_bytes, steps))} for kind, steps in steps_by_kind]


class PruneDocument(
    ChangeDocument, record=PrunePlan, request="keep_batches oldest_version needed", result="bytes pruned"
):
    """The document of ``ckpt prune``."""

    steps: tuple[RemovalKeys, ...]
    replay: tuple[()]
    bytes: Annotated[int, lambda plan: sum(map(count_bytes, plan.steps))]
    pruned: Annotated[tuple[_Pruned, ...], _derive_pruned]
    in_sinks: tuple[()]


class PruneReport(ChangeReport[PrunePlan]):
    """Files that no restart needs."""

    keys = PruneDocument
    done = "PRUNED {report.total}: {report.afterwards}, as before"
    planned = "{report.total} can be removed; afterwards: {report.afterwards}, as now"
    verb = "PRUNE"
    stop = words("End the driver.")
    change = "pruning"

    @property
    def total(self) -> str:
        return f"{plural(len(self.plan.steps), 'file')}, {size(sum(map(count_bytes, self.plan.steps)))}"

    def about_steps(self) -> str:
        return self.plan.why

    def own_part(self) -> Iterator[Block]:
        rows = []
        for pruned in self.plan.pruned:
            steps, what = _find_steps(self.plan, pruned), str(BOOK.text(f"prunes_{pruned.kind}"))
            rows.append((f"  {size(sum(map(count_bytes, steps)))}", plural(len(steps), "file"), what))
        if rows:
            yield Heading("Space", "the backup takes up the same space until you delete it")
            yield Table(tuple(rows))

    def options(self) -> dict[str, Value | None]:
        return {"superseded": self.plan.superseded or None, "keep_batches": self.plan.wanted_batches}

    def start(self) -> Advice:
        return advise(
            do(Do.START, words("Start the query. Once the query has run, delete the backup."), rows=self.rows)
        )
