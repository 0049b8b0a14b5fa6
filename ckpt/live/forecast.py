"""Forecasts of a start, once the sources have answered."""

from collections.abc import Sequence
from dataclasses import replace

from ckpt.live.kind import NextRead
from ckpt.live.outlook import NOT_IN_LOG, SourceOutcome, SourceOutlook
from ckpt.live.records import LiveSource, NotAsked, Unreached
from ckpt.live.registry import foresee
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.versions import Progress

_NO_START = "no start that is forecast reads it: repair the checkpoint first"


def inform_forecast(forecast: Forecast, live: Sequence[LiveSource], in_sink: int | None = None) -> Forecast:
    """Return a forecast as it is with the sources that are there, and with a batch that the sink has; pure."""
    if forecast.outcome is not Outcome.RESUMES or forecast.batch_id is None:
        return forecast
    for source in live:
        stop = _foresee(forecast, source, in_sink).stop
        if stop is not None:
            because = (*forecast.because, *stop.because)
            return replace(forecast, outcome=stop.outcome, error=stop.error, because=because)
    return forecast


def foresee_sources(
    forecasts: Sequence[Forecast], live: Sequence[LiveSource], in_sink: int | None = None
) -> tuple[SourceOutlook, ...]:
    """Forecast the next start for each source that was asked; pure.

    Args:
        forecasts: Of the starts that somebody may try, as they are without an answer.
        live: The answers.
        in_sink: A batch that the sink has: if it runs again, the sink passes over it and no task reads it.

    """
    running = [forecast for forecast in forecasts if forecast.outcome is Outcome.RESUMES]
    synchronous = [forecast for forecast in running if forecast.progress is Progress.SYNC]
    start = next(reversed(synchronous or running), None)
    return tuple(_foresee(start, source, in_sink) for source in live)


def _foresee(start: Forecast | None, source: LiveSource, in_sink: int | None) -> SourceOutlook:
    if isinstance(source.answer, Unreached):
        return SourceOutlook(source, SourceOutcome.UNREACHED, f"not reached: {source.answer.reason}")
    if isinstance(source.answer, NotAsked):
        return SourceOutlook(source, said=source.answer.reason)
    if start is None:
        return SourceOutlook(source, said=_NO_START)
    reading = next((reading for reading in start.sources if reading.index == source.index), None)
    if reading is None:
        return SourceOutlook(source, said=NOT_IN_LOG)
    passed = bool(start.reexecutes) and start.progress is Progress.SYNC and start.batch_id == in_sink
    return foresee(NextRead(start, source, reading, passed), source.answer)
