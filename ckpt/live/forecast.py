"""The forecast of a start, with what the sources have answered (``ckpt.live``)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ckpt.live.delta.outlook import delta_outlook
from ckpt.live.files.outlook import file_outlook
from ckpt.live.iceberg.outlook import iceberg_outlook
from ckpt.live.kafka.outlook import kafka_outlook
from ckpt.live.outlook import NOT_IN_LOG, SourceOutcome, SourceOutlook
from ckpt.live.records import DeltaNow, FilesNow, IcebergNow, KafkaNow, LiveSource, NotAsked, Unreached
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
    """Forecast the next start for each source that was asked; pure.

    Args:
        forecasts: Of the starts that somebody may try, as they are without an answer.
        live: The answers.
        in_sink: A batch that the sink has: if it runs again, the sink passes over it and no task reads it.

    """
    running = [one for one in forecasts if one.outcome is Outcome.RESUMES]
    start = next((one for one in reversed(running) if one.progress is Progress.SYNC), running[-1] if running else None)
    if start is None:
        said = "no start that is forecast reads it: repair the checkpoint first"
        return tuple(
            _unanswered(source, source.answer)
            if isinstance(source.answer, NotAsked | Unreached)
            else SourceOutlook(source, said=said)
            for source in live
        )
    return tuple(_seen(start, source, in_sink) for source in live)


def _seen(start: Forecast, source: LiveSource, in_sink: int | None) -> SourceOutlook:
    passed = bool(start.reexecutes) and start.progress is Progress.SYNC and start.batch_id == in_sink
    reading = next((one for one in start.sources if one.index == source.index), None)
    if isinstance(source.answer, NotAsked | Unreached):
        return _unanswered(source, source.answer)
    if reading is None:
        return SourceOutlook(source, said=NOT_IN_LOG)
    match source.answer:
        case DeltaNow() as now:
            return delta_outlook(start, source, reading, now, passed=passed)
        case IcebergNow() as now:
            return iceberg_outlook(start, source, reading, now)
        case FilesNow() as now:
            return file_outlook(start, source, reading, now, passed=passed)
        case KafkaNow() as now:
            return kafka_outlook(start, source, reading, now, passed=passed)
        case _:
            assert_never(source.answer)


def _unanswered(source: LiveSource, answer: NotAsked | Unreached) -> SourceOutlook:
    if isinstance(answer, Unreached):
        return SourceOutlook(source, SourceOutcome.UNREACHED, f"not reached: {answer.reason}")
    return SourceOutlook(source, said=answer.reason)
