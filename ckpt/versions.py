"""Where Spark versions differ at a restart: one row per version, one column per difference.

Measured on 3.5.9, 4.0.5, 4.1.4, 4.2.0 and 4.3.0 (``tests/oracle``); ``docs/restart.md`` explains each column.
"""

from dataclasses import dataclass
from enum import StrEnum


class Spark(StrEnum):
    """A minor version of Spark whose restarts ckpt forecasts."""

    V3_5 = "3.5"
    V4_0 = "4.0"
    V4_1 = "4.1"
    V4_2 = "4.2"
    V4_3 = "4.3"

    def at_least(self, other: "Spark") -> bool:
        """Whether this version is ``other`` or a later one."""
        return list(Spark).index(self) >= list(Spark).index(other)


class Progress(StrEnum):
    """How the query tracks its progress: the option ``asyncProgressTrackingEnabled``."""

    SYNC = "sync"
    ASYNC = "async"


@dataclass(frozen=True, slots=True)
class Rules:
    """How one version starts a query."""

    newest_offset_log: int  # highest version line of offsets/ it reads
    newest_commit_log: int  # highest version line of commits/ it reads
    newest_join_format: int  # highest join.stateFormatVersion that it accepts as a setting
    runs_join_format: int  # highest that its joins run with
    commit_log_exact: bool  # it reads no other version of commits/ than its session writes
    needs_metadata: bool  # without ``metadata`` beside a log it refuses to start
    checks_repartition: bool  # looks for an unfinished repartition when the latest batch is uncommitted
    check_needs_partitions: bool  # and that check dies where no number of shuffle partitions is recorded
    new_query_needs_empty: bool  # it refuses a new query where offsets/, state/ or commits/ hold something
    asserts_no_commits: bool  # and trips over left commits before that, with other words


RULES: dict[Spark, Rules] = {
    Spark.V3_5: Rules(1, 1, 2, 2, False, False, False, False, False, False),
    Spark.V4_0: Rules(1, 2, 2, 2, True, False, False, False, False, False),
    Spark.V4_1: Rules(1, 2, 3, 3, True, False, False, False, True, False),
    Spark.V4_2: Rules(2, 3, 4, 3, False, True, True, True, True, True),
    Spark.V4_3: Rules(2, 3, 4, 4, False, True, True, False, True, True),
}
