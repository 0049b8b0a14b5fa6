"""The one line that a tired person reads first."""

from collections.abc import Sequence

from ckpt.diagnoses.logs import SOURCES_DIFFER
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.versions import Progress, Spark

IF_STATELESS = ", if the query keeps no state"


def verdict(
    forecasts: Sequence[Forecast],
    others: Sequence[Forecast] = (),
    errors: Sequence[str] = (),
    *,
    state_unseen: bool = False,
) -> str:
    """What the forecasts that count come to, as one sentence without a full stop.

    Args:
        forecasts: Those that count.
        others: Of versions that count less; where they come to something else, the sentence names its versions.
        errors: Codes of what was found besides: a query that restarts with an error is not out of trouble.
        state_unseen: There is no state, and no file shows whether the query keeps any: a restart that is safe is
            promised to a stateless query only.

    """
    running = [f for f in forecasts if f.outcome.runs]
    if len(running) == len(forecasts):
        start = _capital(" or ".join(dict.fromkeys(_start(f) for f in running)))
        which = _on(forecasts, [f for f in others if f.outcome.runs], others)
        return start + which + (IF_STATELESS if state_unseen else "") + (_losses(running) or _troubles(errors))
    if not running:
        failing = [f for f in others if not f.outcome.runs and f.outcome is not Outcome.UNKNOWN]
        return _none_runs(forecasts, _on(forecasts, failing, others))
    by_mode = {mode: [f for f in forecasts if f.progress is mode] for mode in Progress}
    if by_mode[Progress.SYNC] and by_mode[Progress.ASYNC]:
        alive = [mode for mode, these in by_mode.items() if all(f.outcome.runs for f in these)]
        dead = [mode for mode, these in by_mode.items() if not any(f.outcome.runs for f in these)]
        if alive == [Progress.ASYNC] and dead == [Progress.SYNC]:
            return "Will not restart without asynchronous progress tracking" + _losses(running)
        if alive == [Progress.SYNC] and dead == [Progress.ASYNC]:
            start = _capital(" or ".join(dict.fromkeys(_start(f) for f in running)))
            return f"{start}, without asynchronous progress tracking only" + _losses(running)
    alive_on = {f.spark for f in running}
    dead_on = {f.spark for f in forecasts} - {s for s in alive_on if _all_run(forecasts, s)}
    alive_text = f"restarts on Spark {spell(sorted(alive_on))}" if alive_on else ""
    return f"Will not restart on Spark {spell(sorted(dead_on))}; {alive_text}" + _losses(running)


def _on(forecasts: Sequence[Forecast], alike: Sequence[Forecast], others: Sequence[Forecast]) -> str:
    """The versions that a sentence holds for, where it does not hold for all: these, and others alike in all modes."""
    unlike = {f.spark for f in others if f not in alike}
    if not unlike:
        return ""
    return f" on Spark {spell(list(dict.fromkeys(f.spark for f in (*forecasts, *alike) if f.spark not in unlike)))}"


def spell(versions: Sequence[Spark]) -> str:
    """``3.5 to 4.3`` for a run of versions, ``3.5, 4.2`` otherwise."""
    every = list(Spark)
    places = sorted(every.index(version) for version in versions)
    if len(places) > 2 and places == list(range(places[0], places[-1] + 1)):
        return f"{every[places[0]]} to {every[places[-1]]}"
    return ", ".join(every[place] for place in places)


def _all_run(forecasts: Sequence[Forecast], spark: Spark) -> bool:
    return all(f.outcome.runs for f in forecasts if f.spark is spark)


def _start(forecast: Forecast) -> str:
    if forecast.outcome is Outcome.STARTS_FRESH:
        return "starts fresh at batch 0"
    if forecast.reexecutes:
        return f"restarts by running batch {forecast.batch_id} again"
    return f"restarts with new batch {forecast.batch_id}"


def _losses(running: Sequence[Forecast]) -> str:
    never = sorted({batch for f in running for batch in f.lost})
    if not never:
        return ""
    which = f"batch {never[0]}" if len(never) == 1 else f"batches {never[0]} to {never[-1]}"
    return f", but never runs {which} again: rows are lost if {'it' if len(never) == 1 else 'they'} had not finished"


def _troubles(errors: Sequence[str]) -> str:
    if SOURCES_DIFFER.code in errors:
        return f", but only a query with as many sources as its newest offsets name: see {SOURCES_DIFFER.code}"
    return f", but not safely: see {', '.join(dict.fromkeys(errors))}" if errors else ""


def _none_runs(forecasts: Sequence[Forecast], which: str) -> str:
    outcomes = {f.outcome for f in forecasts}
    batches = sorted({f.batch_id for f in forecasts if f.batch_id is not None})
    if outcomes == {Outcome.REFUSED}:
        return f"Will not restart{which} with asynchronous progress tracking: it is for stateless queries"
    if outcomes <= {Outcome.UNKNOWN}:
        return "Unknown what a start will do"
    if outcomes == {Outcome.FAILS_IN_BATCH}:
        return f"Will not restart{which}: batch {batches[0]} fails while it runs"
    if outcomes == {Outcome.FAILS_AT_COMMIT}:
        return f"Will not restart{which}: batch {batches[0]} runs, writes its rows, and then fails at its commit"
    if Outcome.UNKNOWN in outcomes:
        return f"Will not restart{which}, as far as ckpt can tell"
    return f"Will not restart{which}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
