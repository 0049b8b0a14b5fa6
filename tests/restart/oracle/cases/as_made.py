"""Every sample as it is, real or damaged, and the real ones with little done to them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.spark import queries
from tests.support.spark.damage import DAMAGED
from tests.support.spark.samples import ORIGIN, SAMPLES, Sample

from . import model
from .model import Case, Mutation, delete_logs, latest, replace

SCHEMA_PATHS = "state/0/_metadata/v2/[0-9]*"
MOVED_FROM = "/tmp/ckpt-samples-no-longer-here"


def relocated(sample: Sample) -> list[Mutation]:
    """Make the absolute paths inside a sample its copy's own: schema files, and input files in the source log."""
    if sample.query.startswith("transform-with-state"):
        return [replace(SCHEMA_PATHS, str(ORIGIN / sample.name), "{checkpoint}")]
    for query, logs in (("file-source", "sources/0"), ("named-file-sources", "sources/*")):
        if sample.query == query:
            return [replace(f"{logs}/[0-9]*", str(queries.INPUTS), "{folder}/inputs")]
    return []


def usable() -> Iterator[Sample]:
    """Samples that can be restarted without a service or a jar beyond Spark."""
    for sample in SAMPLES:
        wants = queries.QUERIES[sample.query].needs
        if not wants and sample.run != "continuous" and (model.SAMPLES / sample.name).is_dir():
            yield sample


def _of(sample: Sample) -> Iterator[Case]:
    last, home = latest(sample.name), relocated(sample)

    def made(name: str, damage: list[Mutation], store: str = "own") -> Case:
        mutations = tuple(damage) if name == "moved" else (*home, *damage)
        refusal = name == "whole"
        return Case(f"made-{sample.name}-{name}", sample.name, mutations, sample.query, store, refusal=refusal)

    yield made("whole", [])
    if sample.run != "killed":
        yield made("uncommitted", delete_logs(commits=[last]))
    if sample.run == "async" or sample.store == "format2":
        yield made("without-latest", delete_logs([last], [last]))
    if sample.query.startswith("transform-with-state"):
        yield made("moved", [replace(SCHEMA_PATHS, str(ORIGIN), MOVED_FROM)])
    if sample.store not in (None, "hdfs"):
        yield made("whole-default-session", [], "default")


def cases() -> Iterator[Case]:
    """Whole, latest batch uncommitted, in another session, moved; and the damaged samples."""
    samples = {sample.name: sample for sample in usable()}
    for sample in samples.values():
        yield from _of(sample)
    for damaged in DAMAGED:
        if base := samples.get(damaged.base):
            yield Case(damaged.name, base.name, (*relocated(base), *damaged.mutations), base.query)
