"""Every suite by its name, in the order in which a new Spark version is asked."""

from __future__ import annotations

from importlib import import_module

from tests.record.suite import Suite

MODULES = {
    "restart": "tests.restart.oracle.record:SUITE",
    "restart-releases": "tests.restart.oracle.releases:SUITE",
    "real-time": "tests.restart.realtime.record:SUITE",
    "real-time-processor": "tests.restart.realtime.processor:SUITE",
    "continuous": "tests.restart.continuous.record:SUITE",
    "pipelines": "tests.restart.pipelines.record:SUITE",
    "repair-async": "tests.changes.fixes.async_gap.oracle.record:SUITE",
    "changes": "tests.changes.oracle.record:SUITE",
    "offsets": "tests.changes.offsets.oracle.record:SUITE",
    "kafka": "tests.live.kafka.record:SUITE",
    "delta": "tests.live.delta.record:SUITE",
    "change-feed": "tests.live.delta.feed:SUITE",
    "iceberg": "tests.live.iceberg.record:SUITE",
    "iceberg-places": "tests.live.iceberg.places:SUITE",
    "iceberg-remedies": "tests.live.iceberg.remedies_followed:SUITE",
    "files": "tests.live.files.record:SUITE",
    "sink-batches": "tests.live.sink.record:DROPPED",
    "sink-state": "tests.live.sink.record:STATEFUL",
    "iceberg-sink": "tests.live.sink.iceberg:SUITE",
    "known-bugs": "tests.inspection.bugs.record:SUITE",
    "alarms": "tests.inspection.alarms.record:SUITE",
    "preflight": "tests.inspection.preflight.record:SUITE",
    "preflight-across": "tests.inspection.preflight.record:ACROSS",
    "signatures": "tests.inspection.preflight.record:SIGNATURES",
    "rewrite": "tests.new.rewrite.record:SUITE",
    "rewrite-planned": "tests.new.rewrite.planned:SUITE",
    "rewrite-salvage": "tests.new.rewrite.salvaged:SUITE",
    "rewrite-merge": "tests.new.rewrite.merged:SUITE",
    "points": "tests.new.copy.record:SUITE",
    "evolve": "tests.new.evolve.record:SUITE",
    "evolve-pairs": "tests.new.evolve.pairs:SUITE",
    "evolve-tables": "tests.new.evolve.tables:SUITE",
    "states": "tests.state.native.states:SUITE",
    "logs": "tests.formats.spark_answers:SUITE",
    "export": "tests.state.export.matrix:SUITE",
    "driver-logs": "tests.inspection.explain.drivers:SUITE",
    "failed-programs": "tests.inspection.explain.programs:SUITE",
    "error-classes": "tests.inspection.explain.classes:SUITE",
    "messages": "tests.inspection.explain.messages:SUITE",
}
"""Where each suite is declared; it is imported when it is used, because the worker of some has no ckpt."""


def load(name: str) -> Suite:
    module, _, attribute = MODULES[name].partition(":")
    suite: Suite = getattr(import_module(module), attribute)
    return suite
