"""Places that other hosts do not see, or that end with an application or a machine, as paths show them."""

import re
from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import STATE, Checkpoint
from ckpt.checkpoint.state.folders import SSTS, find_nested
from ckpt.model import DamageKind
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.storage.locations import is_of_one_host

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEMPORARY = re.compile(rf"^(.*?/temporary-{_UUID})(?=/|$)")
_PASSING = re.compile(
    r"^(?:file:/*|dbfs:/+)?(/?(?:local_disk0|databricks/driver|mnt/tmp|opt/spark/work-dir)"
    r"|/.*?/kubernetes\.io~empty-dir/[^/]+|/.*?/appcache/application_\w+)(?=/|$)"
)
"""Databricks, its driver, EMR, the image of Spark; a pod's own volume, and folders of YARN's containers."""


def find_passing_place(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that the checkpoint is, or was written, in a place that ends with the run, the container or the machine."""
    recorded = ((f"{STATE}/{operator.id}", path) for operator in checkpoint.operators for path in operator.schema_paths)
    for path, location in (("", checkpoint.uri), *recorded):
        where = f"it was written in {location}" if path else location
        if made := _TEMPORARY.match(location):
            detail = f"{where if path else made[1]}: Spark made it for one run because checkpointLocation was not set"
        elif kept := _PASSING.match(location):
            detail = f"{where}: {kept[1]} disappears with the container or the machine"
        else:
            continue
        yield Finding(diagnoses.others.PASSING_PLACE, path, detail)
        return


def find_other_hosts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that partitions of state have no folder on a local path: executors elsewhere wrote them on their own disks.

    Measured on 4.2 with workers that have disks of their own: the driver writes the logs and the schemas, and batches
    run and are committed until a partition is loaded on another host.
    """
    damages = checkpoint.state.damages if checkpoint.state else ()
    missing = [at.path for at in damages if at.kind is DamageKind.MISSING_PARTITION and at.path.count("/") == 2]
    missing = [path for path in missing if not checkpoint.listing.has_folder(f"{path}/{SSTS}")]
    if missing and is_of_one_host(checkpoint.uri) and not find_nested(checkpoint.listing).keys() >= {*missing}:
        detail = "executors on other hosts may have it"
        yield Finding(diagnoses.others.OTHER_HOSTS, missing[0], detail)
