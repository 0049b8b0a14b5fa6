"""The public names of ckpt, each with the module that has it; ``ckpt.__getattr__`` imports it from there."""

from ckpt.calls.evolve import evolve as evolve
from ckpt.calls.inspect import inspect as inspect
from ckpt.calls.preflight import describe_query as describe_query, preflight as preflight
from ckpt.calls.rehearse import rehearse as rehearse
from ckpt.calls.scan import scan as scan
from ckpt.changes.fixes.repair import repair as repair
from ckpt.changes.fixes.repair_async import repair_async as repair_async
from ckpt.changes.offsets.commit import offsets_commit as offsets_commit
from ckpt.changes.offsets.exchange import (
    offsets_export as offsets_export,
    offsets_import as offsets_import,
    offsets_show as offsets_show,
)
from ckpt.changes.offsets.move import offsets_move as offsets_move
from ckpt.changes.offsets.plan import offsets_set as offsets_set
from ckpt.changes.prune.plan import prune as prune
from ckpt.changes.relocate.plan import relocate as relocate
from ckpt.changes.rewind.rewind import rewind as rewind
from ckpt.changes.skip.plan import skip as skip
from ckpt.checkpoint.checkpoint import Checkpoint as Checkpoint
from ckpt.checkpoint.reader import open_checkpoint as open_checkpoint
from ckpt.errors import (
    CkptError as CkptError,
    NotFound as NotFound,
    StorageError as StorageError,
    UsageError as UsageError,
)
from ckpt.inspection.explain.explain import explain as explain
from ckpt.inspection.inspection import Inspection as Inspection
from ckpt.migrate.handoff.plan import handoff as handoff
from ckpt.migrate.switches import migrate_provider as migrate_provider, migrate_real_time as migrate_real_time
from ckpt.new.copy.copy import copy as copy
from ckpt.new.fill.import_state import import_state as import_state, write_state as write_state
from ckpt.new.rewrite.rewrite import merge as merge, rewrite as rewrite, split as split
from ckpt.spark.api import (
    read_changes as read_changes,
    read_initial_state as read_initial_state,
    read_state as read_state,
)
from ckpt.spark.calls import (
    export_state as export_state,
    migrate_changelog as migrate_changelog,
    migrate_transform_with_state as migrate_transform_with_state,
)
from ckpt.state.native.api import read_state_arrow as read_state_arrow, read_state_batches as read_state_batches
from ckpt.state.native.diff import state_diff as state_diff
from ckpt.state.native.history import state_history as state_history
from ckpt.state.native.show import state_count as state_count, state_keys as state_keys, state_show as state_show
from ckpt.state.reading.units import state_units as state_units
from ckpt.state.verify.verify import state_verify as state_verify
from ckpt.tables.answers import sql as sql
from ckpt.tables.connect import connect as connect, run_sql as run_sql
from ckpt.versions import Spark as Spark, __version__ as __version__

from . import types as types

__all__: list[str]
