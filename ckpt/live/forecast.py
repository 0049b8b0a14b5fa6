"""Forecasts of a start, once the sources have answered."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ckpt.live.delta.outlook import foresee_delta
from ckpt.live.files.outlook import foresee_files
from ckpt.live.iceberg.outlook import foresee_iceberg
from ckpt.live.kafka.outlook import foresee_kafka
from ckpt.live.kind import NextRead
from ckpt.live.outlook import NOT_IN_LOG, SourceOutcome, SourceOutlook
from ckpt.live.plugins import foresee_plugin
from ckpt.live.records import DeltaNow, FilesNow, IcebergNow, KafkaNow, LiveSource, NotAsked, PluginNow, Unreached
from ckpt.restart.findings import Forecast, Outcome
from ckpt.versions import Progress

_NOT_TRIED = "some data for the next start in micro-batches is gone: the outcome with this trigger was not tried"
_NO_START = "no forecast start reads it: repair the checkpoint first"


def inform_forecast(forecast: Forecast, live: Sequence[LiveSource], in_sink: int | None = None) -> Forecast:
    """Return a forecast as it is with the sources that are there, and with a batch that the sink has; pure."""
    if forecast.outcome is not Outcome.RESUMES or forecast.batch_id is None or not forecast.progress.in_micro_batches:
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

    ``forecasts`` are those that somebody may try, as they are without an answer. If the batch ``in_sink`` runs
    again, the sink skips it and no task reads it.
    """
    running = [forecast for forecast in forecasts if forecast.outcome is Outcome.RESUMES]
    synchronous = [forecast for forecast in running if forecast.progress is Progress.SYNC]
    start = next(reversed(synchronous or running), None)
    outlooks = tuple(_foresee(start, source, in_sink) for source in live)
    if start is None or start.progress.in_micro_batches:
        return outlooks
    return tuple(
        replace(outlook, outcome=SourceOutcome.UNKNOWN, said=_NOT_TRIED, findings=(), stop=None)
        if outlook.stop is not None or outlook.findings
        else outlook
        for outlook in outlooks
    )


def _foresee(start: Forecast | None, source: LiveSource, in_sink: int | None) -> SourceOutlook:
    match source.answer:
        case Unreached(reason):
            return SourceOutlook(source, SourceOutcome.UNREACHED, f"not reached: {reason}")
        case NotAsked(reason):
            return SourceOutlook(source, said=reason)
    if start is None:
        return SourceOutlook(source, said=_NO_START)
    reading = next((reading for reading in start.sources if reading.index == source.index), None)
    if reading is None:
        return SourceOutlook(source, said=NOT_IN_LOG)
    passed = bool(start.reexecutes) and start.progress is Progress.SYNC and start.batch_id == in_sink
    read, now = NextRead(start, source, reading, passed), source.answer
    match now:
        case KafkaNow():
            return foresee_kafka(read, now)
        case DeltaNow():
            return foresee_delta(read, now)
        case IcebergNow():
            return foresee_iceberg(read, now)
        case FilesNow():
            return foresee_files(read, now)
        case PluginNow():
            return foresee_plugin(read, now)
        case _:
            assert_never(now)
