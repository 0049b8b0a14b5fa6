"""Flows of a pipeline, what is done to their folders between two runs, and the remedy before the third.

Each flow reads one file a batch, of four rows, and has read three: its newest batch is 2, in version 0.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Damage = Callable[[Path], None]
"""What happens to the folder of a flow, which has its versions in it."""
SIZE = 4


@dataclass(frozen=True)
class Case:
    """One flow, the only one of its table, which has the name of the case."""

    name: str
    damage: Damage = lambda flow: None
    keyed: bool = False  # dropDuplicates, with state
    remedy: str | None = None  # the call of ckpt before the third run
    cleaned: bool = False  # the source has lost what was read

    @property
    def table(self) -> str:
        """The name of its table, and of its flow."""
        return self.name.replace("-", "_")


def empty(path: str) -> Damage:
    """A file of version 0 is empty, as a crash of a machine leaves it."""

    def damage(flow: Path) -> None:
        (flow / "0" / path).write_bytes(b"")
        _remove_checksum(flow / "0" / path)

    return damage


def lose(*paths: str) -> Damage:
    """Files of version 0 are gone."""

    def damage(flow: Path) -> None:
        for path in paths:
            (flow / "0" / path).unlink()
            _remove_checksum(flow / "0" / path)

    return damage


def make(*names: str) -> Damage:
    """Folders appear beside version 0."""

    def damage(flow: Path) -> None:
        for name in names:
            (flow / name).mkdir()

    return damage


def copy(name: str, *parts: str) -> Damage:
    """Parts of version 0, or all of it, appear as another version."""

    def damage(flow: Path) -> None:
        if not parts:
            shutil.copytree(flow / "0", flow / name)
        for part in parts:
            (flow / name / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(flow / "0" / part, flow / name / part)

    return damage


def rename(old: str, new: str) -> Damage:
    """A version gets another name."""

    def damage(flow: Path) -> None:
        (flow / old).rename(flow / new)

    return damage


def both(*damages: Damage) -> Damage:
    def damage(flow: Path) -> None:
        for do in damages:
            do(flow)

    return damage


def _delete(flow: Path) -> None:
    shutil.rmtree(flow / "0")


def _put_file(flow: Path) -> None:
    (flow / "9").write_text("no folder")


def _remove_checksum(file: Path) -> None:
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


CASES = (
    Case("as-it-is"),
    Case("as-it-is-keyed", keyed=True),
    Case("newest-uncommitted", lose("commits/2")),
    Case("newest-uncommitted-keyed", lose("commits/2"), keyed=True),
    Case("planned-empty", empty("offsets/3"), remedy="repair"),
    Case("planned-empty-keyed", empty("offsets/3"), keyed=True, remedy="repair"),
    Case("commit-empty", empty("commits/2"), remedy="repair"),
    Case("commits-ahead", lose("offsets/2"), remedy="repair"),
    Case("predecessor-missing", lose("offsets/1"), remedy="repair"),
    Case("metadata-lost", lose("metadata")),
    Case("source-log-lost", lose("sources/0/2"), remedy="repair"),
    Case("state-lost-keyed", lose("state/0/0/3.delta"), keyed=True),
    Case("higher-empty", make("7")),
    Case("higher-empty-keyed", make("7"), keyed=True),
    Case("higher-empty-cleaned", make("7"), cleaned=True),
    Case("higher-empty-renamed", both(make("7"), rename("7", "7.unused"))),
    Case("higher-empty-renamed-keyed", both(make("7"), rename("7", "7.unused")), keyed=True),
    Case("higher-metadata-only", copy("7", "metadata"), cleaned=True),
    Case("higher-planned", copy("7", "metadata", "offsets/0", "sources/0/0")),
    Case("higher-planned-renamed", both(copy("7", "metadata", "offsets/0", "sources/0/0"), rename("7", "7.unused"))),
    Case("other-names", make("notes", ".hidden", "8x", "0.ckpt-backup-20261126T120000Z", "99999999999")),
    Case("file-with-a-number", _put_file),
    Case("leading-zeros", copy("007")),
    Case("plus-sign", copy("+8")),
    Case("copied", copy("1"), remedy="prune"),
    Case("copied-keyed", copy("1"), keyed=True, remedy="prune"),
    Case("renamed", rename("0", "zero")),
    Case("deleted-cleaned", _delete, cleaned=True),
    Case("deleted-keyed", _delete, keyed=True),
)
REFRESHED = (Case("refreshed", remedy="prune"), Case("refreshed-keyed", keyed=True, remedy="prune"))
"""Flows with a full refresh after the first run."""
ADOPTED = (Case("adopted"), Case("adopted-keyed", keyed=True))
"""Flows that begin in the second run, with the checkpoint of an ordinary query that wrote their table."""
TWO = "two_flows"
"""A table of files with two append flows, ``two_flows_a`` and ``two_flows_b``."""
SINK = "side"
"""A sink with a flow, ``into_side``."""
ALL = (*CASES, *REFRESHED, *ADOPTED)
