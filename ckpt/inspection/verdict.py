"""The one line that a tired person reads first."""

from collections.abc import Sequence

from ckpt.restart import diagnoses
from ckpt.restart.findings import Forecast, Outcome
from ckpt.texts import span
from ckpt.versions import Progress, Spark

_HOW = {
    Progress.SYNC: "",
    Progress.ASYNC: "",
    Progress.REALTIME: " in real-time mode",
    Progress.CONTINUOUS: " with a continuous trigger",
}
IF_STATELESS = ", if the query is stateless"
AS_FAR_AS_NAMES = ", judging by names and sizes"


def verdict(
    forecasts: Sequence[Forecast],
    others: Sequence[Forecast] = (),
    errors: Sequence[str] = (),
    *,
    cause: str = "",
    state_unseen: bool = False,
    not_read: bool = False,
) -> str:
    """Return the result of the forecasts that count, as one sentence without a full stop.

    Where ``others``, of versions that count less, come to something else, it names their versions. ``errors`` are
    codes of what was found besides: a query that restarts with an error is not out of trouble. ``cause`` is the worst
    finding in a few words. ``state_unseen``: there is no state, and no file shows whether the query keeps any: a
    restart that is safe is promised to a stateless query only. ``not_read``: the next start loads state files that
    were not read completely.
    """
    otherwise = [f for f in others if not f.progress.in_micro_batches and f not in forecasts]
    others = [f for f in others if f not in otherwise]
    running = [f for f in forecasts if f.outcome.runs]
    if len(running) == len(forecasts):
        which = _name_versions(forecasts, [f for f in others if f.outcome.runs], others)
        proviso = (IF_STATELESS if state_unseen else "") + (AS_FAR_AS_NAMES if not_read else "")
        return _starts(running) + which + proviso + (_spell_losses(running, cause) or _spell_troubles(errors, cause))
    if not running:
        failing = [f for f in others if not f.outcome.runs and f.outcome is not Outcome.UNKNOWN]
        modes = dict.fromkeys(_HOW[f.progress] for f in otherwise if f.outcome.runs)
        which = _name_versions(forecasts, failing, others)
        return _spell_none_runs(forecasts, which, "".join(f", but{how}" for how in modes), cause)
    by_mode = _spell_by_mode(forecasts, running)
    spelled = _spell_by_version(forecasts, running, cause) if by_mode is None else by_mode + _after_colon(cause)
    return spelled + (AS_FAR_AS_NAMES if not_read else "") + _spell_losses(running)


def _after_colon(cause: str) -> str:
    return f": {cause}" if cause else ""


def _spell_by_mode(forecasts: Sequence[Forecast], running: Sequence[Forecast]) -> str | None:
    """Say that one way of tracking progress runs on all versions, and the other on none."""
    runs = {mode: {f.outcome.runs for f in forecasts if f.progress is mode} for mode in (Progress.SYNC, Progress.ASYNC)}
    if runs == {Progress.SYNC: {False}, Progress.ASYNC: {True}}:
        return "Will not restart without asynchronous progress tracking"
    if runs == {Progress.SYNC: {True}, Progress.ASYNC: {False}}:
        return f"{_starts(running)}, without asynchronous progress tracking only"
    return None


def _spell_by_version(forecasts: Sequence[Forecast], running: Sequence[Forecast], cause: str) -> str:
    """Name each version once: those that do not run and why, then those that do, or do in one mode only."""
    versions: dict[str, list[Spark]] = {}
    for version in dict.fromkeys(f.spark for f in forecasts):
        runs = {f.progress for f in running if f.spark is version}
        fails = {f.progress for f in forecasts if f.spark is version} - runs
        versions.setdefault(_spell_modes(runs, fails), []).append(version)
    clauses = sorted(versions, key=lambda clause: not clause.startswith("will not"))
    spelled = [clause.format(spell(versions[clause])) for clause in clauses]
    last = max(sum(clause.startswith("will not") for clause in clauses), 1) - 1
    spelled[last] += _after_colon(cause)
    return _capitalise("; ".join(spelled))


def _spell_modes(runs: set[Progress], fails: set[Progress]) -> str:
    how = "".join(dict.fromkeys(_HOW[mode] for mode in runs | fails))
    if not runs or not fails:
        return f"restarts on Spark {{}}{how}" if runs else f"will not restart on Spark {{}}{how}"
    only = " without asynchronous progress tracking"
    return f"will not restart on Spark {{}}{only}" if Progress.ASYNC in runs else f"restarts on Spark {{}}{only} only"


def _name_versions(forecasts: Sequence[Forecast], alike: Sequence[Forecast], others: Sequence[Forecast]) -> str:
    """Name versions for which a sentence holds, if not for all: these, and others that are alike in all modes."""
    unlike = {f.spark for f in others if f not in alike}
    if not unlike:
        return ""
    return f" on Spark {spell(list(dict.fromkeys(f.spark for f in (*forecasts, *alike) if f.spark not in unlike)))}"


def spell(versions: Sequence[Spark]) -> str:
    """``3.5 to 4.3`` for a run of versions, ``3.5, 4.2`` otherwise."""
    in_order = sorted(versions, key=lambda version: version.rank)
    if len(in_order) > 2 and in_order[-1].rank - in_order[0].rank == len(in_order) - 1:
        return f"{in_order[0]} to {in_order[-1]}"
    return ", ".join(in_order)


def _starts(running: Sequence[Forecast]) -> str:
    return _capitalise(" or ".join(dict.fromkeys(map(_spell_start, running))))


def _spell_start(forecast: Forecast) -> str:
    how = _HOW[forecast.progress]
    if forecast.outcome is Outcome.STARTS_FRESH:
        return f"starts fresh at batch 0{how}"
    if forecast.reexecutes and not how:
        return f"restarts by running batch {forecast.batch_id} again"
    again = ", which it plans again" if forecast.reexecutes else ""
    return f"restarts{how} with new batch {forecast.batch_id}{again}"


def _spell_losses(running: Sequence[Forecast], cause: str = "") -> str:
    never = sorted({batch for f in running for batch in f.lost})
    if not never:
        return ""
    which = span("batch", never[0], never[-1])
    why = f" ({cause})" if cause else ""
    return f", but loses the rows of {which} if {'it' if len(never) == 1 else 'they'} had not finished{why}"


def _spell_troubles(errors: Sequence[str], cause: str) -> str:
    how = ", but not safely" if errors else "; warning" if cause else ""
    if diagnoses.logs.SOURCES_DIFFER.code in errors:
        how = ", but only with the sources of its newest offsets"
    elif set(errors) == {diagnoses.sinks.FIRST_INTO_NOOP.code}:
        how = ", but only after one start into noop"
    elif set(errors) == {diagnoses.sinks.FIRST_START_UNREADABLE.code}:
        how = ", but first find out whether the sink has that batch"
    return how + _after_colon(cause)


def _spell_none_runs(forecasts: Sequence[Forecast], which: str, but: str, cause: str) -> str:
    if any(finding.diagnosis is diagnoses.others.CONTINUOUS for f in forecasts for finding in f.because):
        which += " in micro-batches"
    which += _HOW[forecasts[-1].progress]
    outcomes = {f.outcome for f in forecasts}
    batches = sorted({f.batch_id for f in forecasts if f.batch_id is not None})
    if outcomes == {Outcome.REFUSED} and not forecasts[0].progress.in_micro_batches:
        return f"Will not restart{which}{but}: {_name_reason(forecasts[-1])}"
    if outcomes == {Outcome.REFUSED}:
        return f"Will not restart{which} with asynchronous progress tracking{but}: it is for stateless queries"
    again = forecasts[0].if_lenient
    if again is not None and all(f.if_lenient == again for f in forecasts):
        by_option = f"with failOnDataLoss, its default; with failOnDataLoss=false it runs batch {again} again"
        return f"Will not restart {by_option}{but}{_after_colon(cause)}"
    if outcomes <= {Outcome.UNKNOWN}:
        return f"Unknown outcome{but}{_after_colon(cause)}"
    how = ", as far as ckpt can tell" if Outcome.UNKNOWN in outcomes else ""
    if outcomes == {Outcome.FAILS_IN_BATCH} and not cause:
        how = f": batch {batches[0]} fails while it runs"
    elif outcomes == {Outcome.FAILS_AT_COMMIT}:
        how = f": batch {batches[0]} writes its rows, then fails at its commit"
    return f"Will not restart{which}{how}{but}{_after_colon(cause)}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def outcome_words(forecast: Forecast) -> str:
    """Return what one start does, as the rest of a sentence."""
    error = f': "{forecast.error}"' if forecast.error else ""
    batch, asynchronous = forecast.batch_id, "asynchronous tracking is for stateless queries"
    words = {
        Outcome.STARTS_FRESH: "starts fresh at batch 0",
        Outcome.RESUMES: f"resumes with new batch {batch}",
        Outcome.FAILS_AT_START: f"fails at start{error}",
        Outcome.FAILS_IN_BATCH: f"fails while batch {batch} runs{error}",
        Outcome.FAILS_AT_COMMIT: f"runs batch {batch}, writes its rows, then fails at the commit{error}",
        Outcome.REFUSED: f"refused: {asynchronous if forecast.progress.in_micro_batches else _name_reason(forecast)}",
        Outcome.UNKNOWN: "unknown to ckpt",
    }
    if forecast.if_lenient is not None:
        lenient = f"runs batch {forecast.if_lenient} again with failOnDataLoss=false"
        return f"fails with failOnDataLoss, the default, and {lenient}"
    if forecast.outcome is not Outcome.RESUMES or not forecast.reexecutes:
        return words[forecast.outcome]
    if not forecast.progress.in_micro_batches:
        return f"deletes planned batches, and resumes with new batch {batch}"
    return f"runs batch {batch} again, then continues"


def _name_reason(forecast: Forecast) -> str:
    return next((finding.detail for finding in forecast.because), "not supported by Spark")
