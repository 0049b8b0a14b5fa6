"""What ``ckpt scan`` says: a line for each checkpoint."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan
from ckpt.restart.findings import Severity
from ckpt.texts import instant, quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Table, Title, Tone, TooWide, more, page_of
from .document import Document, ToolKeys
from .text import plural, size

_HEADS = (
    "",
    "checkpoint",
    "finding",
    "next start",
    "batch",
    "age",
    "uncommitted",
    "state",
    "a batch",
    "replay",
    "waiting",
    "verdict",
)
_SHOWN = 10  # checkpoints that could not be inspected, and findings, that are explained on a page
_KINDS = 3  # findings for which Next has a command
_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


@dataclass(frozen=True)
class ScanReport:
    """What was found below all roots."""

    found: Scan
    fail_on: Severity = Severity.WARNING

    @property
    def exit(self) -> Exit:
        """Whether something is wrong, or could not be seen."""
        if self.found.problems:
            return Exit.FAILED
        return Exit.FOUND if self.found.fails(self.fail_on) else Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "began_ms": found.began_ms,
            "ended_ms": found.ended_ms,
            "roots": [asdict(root) for root in found.roots],
            "checkpoints": [self._entry(one) for one in found.checkpoints],
        }

    def lines(self) -> Iterator[str]:
        """Each checkpoint as a line of JSON."""
        return (json.dumps(self._entry(one)) for one in self.found.checkpoints)

    def _entry(self, one: ScannedCheckpoint) -> Document:
        return {
            "path": one.path,
            "name": one.name,
            "verdict": one.verdict,
            "outcome": one.outcome,
            "kind": one.kind,
            "query_id": one.query_id,
            "stateful": one.stateful,
            "latest_batch": one.latest_batch,
            "latest_ms": one.latest_ms,
            "age_ms": self.found.age_ms(one),
            "uncommitted": one.uncommitted,
            "files": one.files,
            "bytes": one.size,
            "state_bytes": one.state_bytes,
            "state_growth": one.state_growth,
            "snapshot_lag": one.snapshot_lag,
            "replay_files": one.replay_files,
            "deletable_bytes": one.deletable,
            "lag": one.lag,
            "lost": one.lost,
            "sources_error": one.sources_error,
            "group": one.group,
            "group_error": one.group_error,
            "severity": one.severity,
            "findings": dict(one.findings) if one.error is None else None,
            "codes": list(one.codes),
            "worst": asdict(one.worst) if one.worst else None,
            "error": one.error,
        }

    def page(self) -> Page:
        """How many are in trouble, the lines, and what to do next."""
        return page_of(self._title(), self._headline(), self._table(), self._unseen(), self._next())

    def _title(self) -> Iterator[Block]:
        roots = self.found.roots
        name = roots[0].uri if len(roots) == 1 else plural(len(roots), "root")
        yield Title(name, (plural(len(self.found.checkpoints), "checkpoint"), instant(self.found.ended_ms)))

    def _headline(self) -> Iterator[Block]:
        everything = self.found.checkpoints
        unseen = sum(one.error is not None for one in everything)
        counts = {level: sum(one.severity is level for one in everything) for level in Severity}
        in_error = counts[Severity.ERROR] - unseen
        parts = [f"{in_error:,} with errors"] if in_error else []
        parts += [f"{counts[Severity.WARNING]:,} with warnings"] if counts[Severity.WARNING] else []
        parts += [f"{unseen:,} could not be inspected"] if unseen else []
        parts += [f"{plural(len(self.found.problems), 'root')} without a checkpoint"] if self.found.problems else []
        tone = Tone.ERROR if counts[Severity.ERROR] else Tone.WARNING if parts else Tone.GOOD
        yield Headline(", ".join(parts).upper() if parts else "NOTHING WRONG", tone)

    def _table(self) -> Iterator[Block]:
        rows = tuple(self._row(one) for one in self.found.checkpoints if one.error is None)
        if rows:
            told = [
                place for place, cells in enumerate(zip(*rows, strict=True)) if any(cells)
            ]  # columns with something
            heads = tuple(_HEADS[place] for place in told)
            yield Table(tuple(tuple(row[place] for place in told) for row in rows), heads, TooWide.DROP)

    def _row(self, one: ScannedCheckpoint) -> tuple[str, ...]:
        return (
            "" if one.severity in (None, Severity.NOTE) else str(one.severity),
            self._place(one.path),
            _codes(one.codes),
            str(one.outcome or ""),
            _number(one.latest_batch),
            _age(self.found.age_ms(one)),
            _number(one.uncommitted or None),
            "" if one.state_bytes is None else size(one.state_bytes),
            _growth(one.state_growth),
            _number(one.snapshot_lag),
            _number(one.lag),
            one.verdict or "",
        )

    def _place(self, path: str) -> str:
        """A path without the root, where there is one root only."""
        roots = self.found.roots
        return path.removeprefix(f"{roots[0].uri.rstrip('/')}/") if len(roots) == 1 else path

    def _unseen(self) -> Iterator[Block]:
        problems = list(self.found.problems)
        problems += [f"{one.path}: {one.sources_error}" for one in self.found.checkpoints if one.sources_error]
        problems += [f"{one.path}: {one.group_error}" for one in self.found.checkpoints if one.group_error]
        problems += [one.error for one in self.found.checkpoints if one.error is not None]
        if problems:
            yield Heading("Unseen", "what could not be inspected")
            for problem in problems[:_SHOWN]:
                yield Item(problem, 4, "  - ")
            yield from more(len(problems) - _SHOWN)

    def _next(self) -> Iterator[Block]:
        """One command for each kind of worst finding: what it means is the same in all checkpoints that have it."""
        kinds: dict[str, list[ScannedCheckpoint]] = {}
        for one in self.found.checkpoints:
            if one.worst is not None:
                kinds.setdefault(f"{one.worst.code} {one.worst.name}", []).append(one)
        for number, (name, those) in enumerate(list(kinds.items())[:_KINDS]):
            where = f" in {plural(len(those), 'checkpoint')}" if len(those) > 1 else ""
            yield Item(f"{name}{where}: what it means and what to do", 10, "" if number else "Next")
            yield Command(f"ckpt inspect {quoted_path(those[0].path)}")
        if len(kinds) > _KINDS:
            yield Item(f"and {plural(len(kinds) - _KINDS, 'other finding')}", 10)


def _codes(codes: Sequence[str]) -> str:
    """The first, and how many others."""
    return f"{codes[0]} +{len(codes) - 1}" if len(codes) > 1 else "".join(codes)


def _growth(bytes_: float | None) -> str:
    if bytes_ is None:
        return ""
    return ("-" if bytes_ < 0 else "+") + size(round(abs(bytes_)))


def _number(count: int | None) -> str:
    return "" if count is None else str(count)


def _age(ms: int | None) -> str:
    if ms is None:
        return ""
    for unit, name in _AGES:
        if ms >= unit:
            return f"{ms // unit} {name}"
    return "0 s"
