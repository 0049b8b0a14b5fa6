"""Session settings that Spark's state reader needs, checkpoint by checkpoint: each declared once, with its reason.

They are set on a session that is cloned for the reading: no other session changes. What a query recorded in
its offset log (shuffle partitions, compression codec, ...) Spark takes from there by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ckpt import settings
from ckpt.model import Provider
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.versions import Spark

PROVIDER_CLASSES = {Provider.HDFS: settings.HDFS_PROVIDER, Provider.ROCKSDB: settings.ROCKSDB_PROVIDER}


@dataclass(frozen=True, slots=True)
class ReadingFacts:
    """The authorities over settings."""

    unit: StateUnit
    recorded: Mapping[str, str]  # settings in the offset log
    mounted: bool  # read through a mount table: see ``ckpt.state.reading.mount``
    spark: Spark  # that reads


@dataclass(frozen=True, slots=True)
class Conf:
    """A setting, and why it is needed."""

    name: str
    value: str
    why: str


class _Rule(NamedTuple):
    name: str
    why: str
    value: Callable[[ReadingFacts], str | None]  # None: not needed


RULES = (
    _Rule(
        settings.CHECKPOINT_FORMAT,
        "the names of its state files contain unique ids, so a session set to 1 does not find them",
        lambda at: "2" if at.unit.format_version == 2 else None,
    ),
    _Rule(
        settings.CHECKPOINT_FORMAT,
        "its state is HDFS-backed, which a session set to 2 refuses",
        lambda at: "1" if at.unit.format_version == 1 and at.unit.provider is Provider.HDFS else None,
    ),
    _Rule(
        settings.CHECKPOINT_FORMAT,
        "the names of its state files contain no unique ids, which a session set to 2 looks for",
        lambda at: "1" if at.unit.format_version == 1 and at.unit.provider is not Provider.HDFS else None,
    ),
    _Rule(
        settings.PROVIDER_CLASS,
        "its offset log does not record it, and the session's may differ",
        lambda at: None if settings.PROVIDER_CLASS in at.recorded else PROVIDER_CLASSES.get(at.unit.provider),
    ),
    _Rule(
        settings.FORMAT_VALIDATION,
        "it is a deduplication of Spark before 3.5, which recorded a value schema that its rows lack",
        lambda at: "false" if at.unit.kind is UnitKind.DEDUPLICATION else None,
    ),
    _Rule(
        settings.CHECKPOINT_FILE_MANAGER,
        "it is read through a mount table; the default one fails there before Spark 4.2, or if a path is encoded",
        lambda at: at.spark.rules.file_manager if at.mounted else None,
    ),
)


def confs_for(situation: ReadingFacts) -> tuple[Conf, ...]:
    """The settings that one reading needs, in the order of the table."""
    values = ((rule, rule.value(situation)) for rule in RULES)
    return tuple(Conf(rule.name, value, rule.why) for rule, value in values if value is not None)
