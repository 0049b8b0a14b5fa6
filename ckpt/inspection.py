"""Everything ``ckpt inspect`` says of a checkpoint, as one value; every other command consults it too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ckpt.checkpoint import Checkpoint
from ckpt.checks import check
from ckpt.findings import Asked, Finding, Severity, worst
from ckpt.origin import WrittenBy, written_by
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.restart.rules import forecast
from ckpt.restart.versions import Progress, Spark


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and how much it matters to what was asked."""

    finding: Finding
    severity: Severity
    remedy: str | None


@dataclass(frozen=True)
class Inspection:
    """What one checkpoint holds, what is wrong with it, and what each Spark version will do."""

    checkpoint: Checkpoint
    asked: Asked
    versions_named: bool
    written_by: WrittenBy
    forecasts: tuple[Forecast, ...]  # versions in order, synchronous before asynchronous
    findings: tuple[Judged, ...]  # worst first

    @property
    def sound(self) -> bool:
        """Whether nothing was found but notes."""
        return worst(judged.severity for judged in self.findings) in (None, Severity.NOTE)

    @cached_property
    def counted(self) -> tuple[Forecast, ...]:
        """The forecasts that the verdict rests on: see ``_counts``."""
        return tuple(f for f in self.forecasts if _counts(f, self))


def inspect(checkpoint: Checkpoint, versions: Sequence[Spark] = (), asked: Asked = Asked.BOTH) -> Inspection:
    """Judge a checkpoint for some Spark versions (none named: all) and progress modes; pure, and never raises."""
    modes = [mode for mode in Progress if asked in (Asked.BOTH, mode.value)]
    wanted = [version for version in Spark if version in versions or not versions]
    forecasts = tuple(forecast(checkpoint, version, mode) for mode in modes for version in wanted)
    inspection = Inspection(checkpoint, asked, bool(versions), written_by(checkpoint), forecasts, ())
    seen = _distinct([*(found for f in forecasts for found in f.because), *check(checkpoint)])
    judged = [_judge(found, inspection) for found in seen]
    judged.sort(key=lambda j: (-j.severity.rank, j.finding.diagnosis.code))
    return Inspection(
        checkpoint, asked, bool(versions), inspection.written_by, forecasts, tuple(judged)
    )


def _distinct(found: Iterable[Finding]) -> list[Finding]:
    """One finding per diagnosis and path: forecasts that agree give the same one."""
    return list({(f.diagnosis.code, f.path): f for f in reversed(list(found))}.values())[::-1]


def _counts(one: Forecast, inspection: Inspection) -> bool:
    """Whether a forecast is about a start that somebody may try.

    Not one with a Spark older than the one that wrote the checkpoint, and not an asynchronous one of a stateful
    query, unless that version or mode was asked for by name.
    """
    at_least = inspection.written_by.at_least
    too_old = at_least is not None and not one.spark.at_least(at_least) and not inspection.versions_named
    never_asynchronous = one.outcome is Outcome.REFUSED and inspection.asked is not Asked.ASYNC
    return not too_old and not never_asynchronous


def _judge(found: Finding, inspection: Inspection) -> Judged:
    about = [f for f in inspection.forecasts if found in f.because]
    severity = found.diagnosis.severity_for(inspection.asked)
    if about and not any(_counts(f, inspection) for f in about):
        severity = Severity.NOTE
    remedy = found.diagnosis.remedy
    if remedy is not None:
        remedy = remedy.replace("{{", "{").replace("}}", "}").replace("{checkpoint}", inspection.checkpoint.uri)
    return Judged(found, severity, remedy)
