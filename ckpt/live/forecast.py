"""The forecast of a start, with what the sources have answered (``ckpt.live``)."""

from collections.abc import Sequence
from dataclasses import replace

from ckpt.live.delta.outlook import delta_outlook
from ckpt.live.files.outlook import file_outlook
from ckpt.live.iceberg.outlook import iceberg_outlook
from ckpt.live.kafka.outlook import kafka_outlook
from ckpt.live.outlook import NOT_IN_LOG, SourceOutcome, SourceOutlook
from ckpt.live.records import LiveSource
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.versions import Progress


def informed(forecast: Forecast, live: Sequence[LiveSource], in_sink: int | None = None) -> Forecast:
    """A forecast as it is with the sources that are there, and with a batch that the sink has; pure."""
    if forecast.outcome is not Outcome.RESUMES or forecast.batch_id is None:
        return forecast
    for source in live:
        stop = _seen(forecast, source, in_sink).stop
        if stop is not None:
            because = (*forecast.because, *stop.because)
            return replace(forecast, outcome=stop.outcome, error=stop.error, because=because)
    return forecast


def source_outlooks(
    forecasts: Sequence[Forecast], live: Sequence[LiveSource], in_sink: int | None = None
) -> tuple[SourceOutlook, ...]:
    """What the next start makes of each source that was asked about; pure.

    Args:
        forecasts: Of the starts that somebody may try, as they are without an answer.
        live: The answers.
        in_sink: A batch that the sink has: if it runs again, the sink passes over it and no task reads it.

    """
    running = [one for one in forecasts if one.outcome is Outcome.RESUMES]
    start = next((one for one in reversed(running) if one.progress is Progress.SYNC), running[-1] if running else None)
    if start is None:
        said = "no start that is forecast reads it: repair the checkpoint first"
        return tuple(_unanswered(source) or SourceOutlook(source, said=said) for source in live)
    return tuple(_seen(start, source, in_sink) for source in live)


def _seen(start: Forecast, source: LiveSource, in_sink: int | None) -> SourceOutlook:
    passed = bool(start.reexecutes) and start.progress is Progress.SYNC and start.batch_id == in_sink
    reading = next((one for one in start.sources if one.index == source.index), None)
    if (unanswered := _unanswered(source)) is not None:
        return unanswered
    if reading is None:
        return SourceOutlook(source, said=NOT_IN_LOG)
    if source.delta is not None:
        return delta_outlook(start, source, reading, source.delta, passed=passed)
    if source.iceberg is not None:
        return iceberg_outlook(start, source, reading, source.iceberg)
    if source.files is not None:
        return file_outlook(start, source, reading, source.files, passed=passed)
    if source.kafka is not None:
        return kafka_outlook(start, source, reading, source.kafka, passed=passed)
    return SourceOutlook(source)


def _unanswered(source: LiveSource) -> SourceOutlook | None:
    if source.unreached is not None:
        return SourceOutlook(source, SourceOutcome.UNREACHED, f"not reached: {source.unreached}")
    return SourceOutlook(source, said=source.not_asked) if source.not_asked is not None else None
