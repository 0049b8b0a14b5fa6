"""Every sample as it is, real or damaged, and the real ones with little done to them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.spark import queries
from tests.spark.damage import DAMAGED
from tests.spark.samples import ORIGIN, SAMPLES, Sample

from . import model
from .model import Case, Mutation, delete_logs, planned, replace

SCHEMA_PATHS = "state/0/_metadata/v2/[0-9]*"
MOVED_FROM = "/tmp/ckpt-samples-no-longer-here"


def relocated(sample: Sample) -> list[Mutation]:
    """Make the absolute paths inside a sample its copy's own: schema files, and input files in the source log."""
    if sample.query.startswith("transform-with-state"):
        return [replace(SCHEMA_PATHS, str(ORIGIN / sample.name), "{checkpoint}")]
    if sample.query == "file-source":
        return [replace("sources/0/[0-9]*", str(queries.INPUTS), "{folder}/inputs")]
    return []


def usable() -> Iterator[Sample]:
    """Samples that can be restarted without a service or a jar beyond Spark."""
    for sample in SAMPLES:
        wants = queries.QUERIES[sample.query].needs
        if not wants and sample.run != "continuous" and (model.SAMPLES / sample.name).is_dir():
            yield sample


def _of(sample: Sample) -> Iterator[Case]:
    *_, before, last = planned(sample.name)
    home, killed = relocated(sample), sample.run == "killed"

    def made(name: str, damage: list[Mutation], store: str = "own") -> Case:
        mutations = (*home, *damage) if name != "moved" else tuple(damage)
        refusal = name == "whole"
        return Case(f"made-{sample.name}-{name}", sample.name, mutations, sample.query, store, 1, refusal)

    uncommitted = [] if killed else delete_logs(commits=[last])
    yield made("whole", [])
    if not killed:
        yield made("uncommitted", uncommitted)
    yield made("without-latest", delete_logs([last], [] if killed else [last]))
    yield made("previous-uncommitted", delete_logs([last], [before] if killed else [last, before]))
    if sample.query.startswith("transform-with-state"):
        yield made("moved", [replace(SCHEMA_PATHS, str(ORIGIN), MOVED_FROM)])
    if sample.store not in (None, "hdfs"):
        yield made("whole-default-session", [], "default")
        yield made("uncommitted-default-session", uncommitted, "default")


def cases() -> Iterator[Case]:
    """Whole, latest batch uncommitted, without the latest batch, moved; and the damaged samples."""
    samples = {sample.name: sample for sample in usable()}
    for sample in samples.values():
        yield from _of(sample)
    for damaged in DAMAGED:
        if base := samples.get(damaged.base):
            yield Case(damaged.name, base.name, (*relocated(base), *damaged.mutations), base.query)
