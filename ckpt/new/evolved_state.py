"""Makes the state files of a changed query that the old checkpoint does not have: without rows, or in other columns.

Each partition is read and written as ``ckpt rewrite`` does it, by processes of this machine or by Spark's executors: to
the new checkpoint itself, or for a plan to a temporary folder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.rewritable import count_partitions
from ckpt.new.evolve.state import StatePlan
from ckpt.new.exchange import Exchange
from ckpt.new.placing import Placing
from ckpt.new.rewrite.reshaping import ColumnReshaping
from ckpt.new.rewrite.snapshots import read_file_form
from ckpt.new.rewrite.state import StateRewriting
from ckpt.new.rewrite.stored_rows import Families, make_stored
from ckpt.new.rewrite.writing import NewState
from ckpt.state.native.store_files import context_of as context_of_chosen


def make_state(
    checkpoint: Checkpoint,
    plan: StatePlan,
    made: Placing,
    options: Mapping[str, str],
    engine: Exchange | None,
    jobs: int | None,
) -> dict[str, int]:
    """Make the files that a plan asks for, and return their bytes by path. Raises CkptError.

    ``options`` are for the file system of the checkpoint; ``engine`` makes rows, or ``jobs`` processes of this machine.
    """
    made.begin(f"{OFFSETS}/{checkpoint.offsets.latest}")
    sizes: dict[str, int] = {}
    for files in chain(_make_empty(checkpoint, plan), _make_rows(plan, made, options, engine, jobs)):
        made.take(files)
        sizes |= {path: made.sizes[path] for path in files}
    return sizes


def _make_empty(checkpoint: Checkpoint, plan: StatePlan) -> Iterator[Mapping[str, bytes]]:
    """Make the files of operators that have seen no row."""
    context, batch = context_of(checkpoint.offsets, checkpoint.commits), checkpoint.commits.latest
    for operator in plan.empty:
        assert context.shuffle_partitions is not None
        assert batch is not None
        state = NewState(context.provider, context.shuffle_partitions, batch, plan.ids, read_file_form(context))
        for store in operator.stores:
            for partition in range(count_partitions(operator, store, state.partitions)):
                yield state.make_files(operator, store, partition, make_stored([], []), Families())


def _make_rows(
    plan: StatePlan, made: Placing, options: Mapping[str, str], engine: Exchange | None, jobs: int | None
) -> Iterator[Mapping[str, bytes | int]]:
    """Make the files of stores whose rows get other columns; of one that a task has written, give its bytes."""
    if plan.rows is None or plan.form is None:
        return
    chosen, form = replace(plan.rows, options=options), plan.form
    ids = {old: plan.ids[new] for old, new in plan.numbers.items() if new in plan.ids}
    file_form = read_file_form(context_of_chosen(chosen))
    state = NewState(form.provider, form.partitions, chosen.moment.batch, ids, file_form, numbers=plan.numbers)
    reshapings = {
        store: None if columns is None else ColumnReshaping(columns, form.provider)
        for store, columns in plan.columns.items()
    }
    writes = engine is not None and engine.writes
    work = StateRewriting(made.storage.uri, dict(made.options), writes, ((chosen, form),), state, reshapings=reshapings)
    yield from (outcome.files for outcome in work.run(engine, jobs) if outcome.files is not None)
