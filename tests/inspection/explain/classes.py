"""Error conditions of Spark, its Kafka connector and Delta: the suite `error-classes` of `python -m tests.record`.

Their lists are JSON in jars: of spark-common-utils of a version, and of its Kafka connector; that of Delta is read by
`python -m tests.inspection.explain.classes 'Delta 4.4.0' JAR`. Recorded into `conditions.json` is each condition that
`FAMILIES` puts into a family, with its text in the newest version, and the jar of each version.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.record.suite import Whole
from tests.record.worker import Installed
from tests.support.services.kafka import connector_jars

RECORDED = Path(__file__).with_name("conditions.json")
_LISTS = ("error-conditions.json", "error-classes.json")
RUNTIME, QUERY, SHARED = "runtime", "query", "shared"


@dataclass(frozen=True)
class Family:
    """Conditions that are raised in one place.

    `runtime`: while a streaming query starts on its checkpoint or runs, or while Spark reads or repartitions its state;
    it depends on what the checkpoint, the source, the sink, the machine or the user's code is then. `query`: while the
    query is planned, from its text and options alone. `shared`: at run time, and by batch jobs in the same words.
    """

    name: str
    kind: str
    names: str  # a pattern of whole names


FAMILIES = (
    Family("logs", RUNTIME, r"BATCH_METADATA_NOT_FOUND|CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|MALFORMED_LOG_FILE"
           r"|INVALID_LOG_VERSION|STREAMING_CHECKPOINT_\w+|CANNOT_LOAD_CHECKPOINT_FILE_MANAGER|FAILED_RENAME_\w+"
           r"|RENAME_SRC_PATH_NOT_FOUND|STREAMING_ASYNC_OPERATION_FAILED|_LEGACY_ERROR_TEMP_22(00|06|07|60|63)"
           r"|_LEGACY_ERROR_TEMP_2198"),
    Family("evolution", RUNTIME, r"STREAMING_QUERY_EVOLUTION_ERROR|STREAMING_REAL_TIME_MODE.CHECKPOINT_FORMAT_\w+"),
    Family("state reader", RUNTIME, r"STDS_\w+|STATE_STORE_PROVIDER_DOES_NOT_SUPPORT_FINE_GRAINED_STATE_REPLAY"
           r"|CANNOT_LOAD_STATE_STORE.SNAPSHOT_PARTITION_ID_NOT_FOUND"),
    Family("repartition", RUNTIME, r"STATE_RE(PARTITION|WRITER)_\w+|STREAMING_UNFINISHED_REPARTITION_DETECTED"),
    Family("transformWithState", RUNTIME, r"STATEFUL_PROCESSOR_\w+|TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE"
           r"|ILLEGAL_STATE_STORE_VALUE|INTERNAL_ERROR_TWS|MISSING_TIMEOUT_CONFIGURATION|EMITTING_ROWS_OLDER_\w+"
           r"|STATE_STORE_(INVALID_(CONFIG_AFTER_RESTART|VALUE_SCHEMA_EVOLUTION|VARIABLE_TYPE_CHANGE)|HANDLE_\w+"
           r"|\w*(COLUMN_FAMILY|ORDERING_COLS|PREFIX_COLS|BINARY_INEQUALITY|THRESHOLD_EXCEEDED)\w*)"
           r"|UNSUPPORTED_FEATURE.(STATE_STORE_\w+|STORE_BACKEND_NOT_SUPPORTED_FOR_TWS)|_LEGACY_ERROR_TEMP_220[345]"),
    Family("state", RUNTIME, r"CANNOT_(LOAD|WRITE)_STATE_STORE|STATE_STORE_\w+|CHECKPOINT_FILE_CHECKSUM_\w+"
           r"|_LEGACY_ERROR_TEMP_2258|STREAM_STREAM_JOIN_\w+|STREAMING_STATEFUL_OPERATOR_\w+"),
    Family("user code", RUNTIME, r"\w+_USER_FUNCTION_ERROR|STREAMING_PYTHON_RUNNER_\w+|_LEGACY_ERROR_TEMP_2256"
           r"|PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR"),
    Family("sources and shuffles", RUNTIME, r"MALFORMED_STATE_IN_RATE_PER_MICRO_BATCH_SOURCE|STREAMING_SHUFFLE_\w+"
           r"|CHANGELOG_CONTRACT_VIOLATION|PIPELINED_SHUFFLE_CROSS_JOB_REUSE|CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"),
    Family("connect and pipelines", RUNTIME, r"CONNECT_INVALID_PLAN.STREAMING_QUERY_\w+"
           r"|AUTOCDC_(INVALID_STATE|MICRO\w+)|SPARK_CONNECT_ILLEGAL_STATE.STREAMING_QUERY_UNEXPECTED_RETURN_VALUE"),
    Family("Kafka", RUNTIME, r"KAFKA_(?!DATA_SOURCE)\w+|MISMATCHED_TOPIC_\w+|END_OFFSET_HAS_\w+|LOST_TOPIC_\w+"
           r"|(UN)?RESOLVED_START_OFFSET_\w+"),
    Family("Delta", RUNTIME, r"DELTA_STREAMING_\w+|DIFFERENT_DELTA_TABLE_\w+|DELTA_SCHEMA_(CHANGED\w*|NOT_SET)"
           r"|DELTA_SOURCE_(IGNORE|TABLE_IGNORE)_\w+|DELTA_CANNOT_FIND_VERSION|DELTA_INVALID_SOURCE_\w+"
           r"|DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION|DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"
           r"|DELTA_MISSING_FILES_UNEXPECTED_VERSION|DELTA_CONCURRENT_TRANSACTION|DELTA_INVALID_CDC_RANGE"
           r"|DELTA_CDC_START_VERSION_AFTER_LATEST|DELTA_MISSING_CHANGE_DATA|DELTA_REMOVE_FILE_CDC_\w+"
           r"|DELTA_CHANGELOG_(READ_FAILED|\w+_IN_RANGE)"),
    Family("planning", QUERY, r"APPEND_ONCE_FROM_BATCH_QUERY|CALL_ON_STREAMING_DATASET_UNSUPPORTED"
           r"|\w+_WATERMARK(_CLAUSE)?|DATA_SOURCE_(CONTINUOUS|MICRO_BATCH|STREAMING)_\w+|(MULTIPLE_)?EVENT_TIME_\w+"
           r"|INCOMPATIBLE_STREAMING_VIEW_READ|INCORRECT_RAMP_UP_RATE|INVALID_STREAMING_REAL_TIME_\w+|INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY"
           r"|KAFKA_DATA_SOURCE_NOT_ENABLED|MISSING_KAFKA_OPTION|NEAREST_BY_JOIN.STREAMING_NOT_SUPPORTED|NESTED_SEQUENTIAL_STREAMING_UNION"
           r"|NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING|NOT_STREAMING_DATASET|STREAMING_(OUTPUT|REAL_TIME)_MODE"
           r"|STATEFUL_CHILDREN_\w+|UNSUPPORTED_OPERATION_FOR_CONTINUOUS_MEMORY_SINK|WRITE_STREAM_NOT_ALLOWED"
           r"|UNSUPPORTED_STREAMING_OPERATOR_WITHOUT_WATERMARK|DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
           r"|DELTA_UNSUPPORTED_OUTPUT_MODE"
           r"|_LEGACY_ERROR_TEMP_(1114|1140|1181|1190|1191|1193|1194|1195|1298|1299|1338|2048|2049|2209|2253|2261|3063|3067|3068"
           r"|3076|3077|3136|3138|3148|3169)"),
    Family("tasks", SHARED, r"FAILED_READ_FILE.FILE_NOT_EXIST|PYTHON_DATA_SOURCE_ERROR"),
    Family("Delta tables", SHARED, r"DELTA_CONCURRENT_(?!TRANSACTION)\w+|DELTA_(METADATA|PROTOCOL)_CHANGED"
           r"|DELTA_VERSION_NOT_FOUND|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_MISSING_PART_FILES"
           r"|DELTA_NOT_A_DELTA_TABLE|DELTA_TABLE_ONLY_OPERATION|DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG|DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_STATE_RECOVER_ERROR|DELTA_TXN_LOG_FAILED_INTEGRITY|DELTA_TABLE_NOT_FOUND"
           r"|DELTA_MISSING_DELTA_TABLE|DELTA_PATH_DOES_NOT_EXIST|DELTA_MAX_COMMIT_RETRIES_EXCEEDED|DELTA_METADATA_MISMATCH"
           r"|DELTA_NOT_NULL_CONSTRAINT_VIOLATED|DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
           r"|DELTA_CAST_OVERFLOW_IN_TABLE_WRITE|DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"),
)  # fmt: skip
"""The first that fits, first for the whole name, then for its main class."""

_STREAMING = re.compile(
    r"stream(?!lin)|StateStore|STATE_STORE|STATEFUL|state store|STDS|offset log|commit log|RocksDB|watermark|"
    r"micro.?batch|foreach|Kafka|TRANSFORM_WITH|GroupsWithState",
    re.I,
)
_ELSEWHERE = re.compile(
    r"STREAM_FAILED|"  # the wrapper around every other
    r"\w*PIPELINE\w*|INVALID_FLOW_QUERY_TYPE|INVALID_RESETTABLE_DEPENDENCY|USER_SPECIFIED_AND_INFERRED_\w+|AUTOCDC_\w+|"
    r"INCOMPATIBLE_BATCH_VIEW_READ|"  # definitions of pipelines
    r"CONNECT_INVALID_PLAN|SPARK_CONNECT_ILLEGAL_STATE|INVALID_PARAMETER_VALUE|"  # messages of a client
    r"UNSUPPORTED_FEATURE|DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS|\w*CHANGE_DATA\w*|INVALID_C(DC_OPTION|HANGELOG_SCHEMA)|"
    r"PARQUET_\w+|INVALID_HANDLER_DECLARATION|\w*EXTERNAL_ENGINE\w*|SPARK_JOB_CANCELLED|TABLE_VALUED_\w+|"
    r"_LEGACY_ERROR_TEMP_\d+"  # batch reads and other parts of Spark; those of streams are named above
)


def family_of(name: str) -> Family | None:
    """The family of a condition; None: it is not one of streaming."""
    for part in dict.fromkeys((name, name.partition(".")[0])):
        for family in FAMILIES:
            if re.fullmatch(family.names, part):
                return family
    return None


def is_overlooked(name: str, text: str) -> bool:
    """Tell whether a condition speaks of streams, is in no family, and nothing says why."""
    main = name.partition(".")[0]
    return bool(_STREAMING.search(f"{name} {text}")) and family_of(name) is None and not _ELSEWHERE.fullmatch(main)


def classes_in(jar: Path) -> dict[str, str]:
    """Every error class of a jar, main and sub, with its text; a sub class has the text of its main class in front."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("error/") and name.endswith(_LISTS):
                for main, entry in json.loads(archive.read(name)).items():
                    if "message" in entry:
                        found |= _texts(main, entry)
    return found


def _texts(main: str, entry: dict[str, Any]) -> dict[str, str]:
    text = "\n".join(entry["message"])
    subs = {f"{main}.{name}": text + " " + "\n".join(sub["message"]) for name, sub in entry.get("subClass", {}).items()}
    return {main: text} | subs


@dataclass(frozen=True)
class Condition:
    """A condition of streaming; `text` has the line ends of the message, and <name> for each of its values."""

    name: str
    text: str
    versions: tuple[str, ...]  # that say it in these words: `4.2`, also of the connector for it, or `Delta 4.4.0`

    @property
    def family(self) -> Family:
        family = family_of(self.name)
        assert family is not None, self.name
        return family

    @property
    def has_class_in_a_log(self) -> bool:
        """Spark and Delta write the class in front; the Kafka connector does not, nor do those without a name yet."""
        return self.family.name != "Kafka" and not self.name.startswith("_LEGACY")


@cache
def _read() -> dict[str, Any]:
    """The recorded file: the jars of each version, and condition -> text -> the versions that have it."""
    document: dict[str, Any] = {"jars": {}, "conditions": {}}
    return json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else document


def conditions() -> tuple[Condition, ...]:
    """Every recorded condition, in each of its wordings; a main class only where it has no parts."""
    recorded = _read()["conditions"]
    mains = {name.partition(".")[0] for name in recorded if "." in name}
    return tuple(
        Condition(name, text, tuple(versions))
        for name, texts in recorded.items()
        if name not in mains
        for text, versions in texts.items()
    )


def versions_of(name: str) -> tuple[str, ...]:
    """The versions that have a condition, oldest first."""
    return tuple(sorted({version for versions in _read()["conditions"][name].values() for version in versions}))


def record(version: str, jars: Iterable[Path]) -> None:
    document = _read()
    known = {
        name: {text: [other for other in versions if other != version] for text, versions in texts.items()}
        for name, texts in document["conditions"].items()
    }
    named = {jar: {name: text for name, text in classes_in(jar).items() if family_of(name)} for jar in jars}
    for name, text in (pair for texts in named.values() for pair in texts.items()):
        known.setdefault(name, {}).setdefault(text, []).append(version)
    document["jars"][version] = sorted(jar.name for jar, texts in named.items() if texts)
    document["conditions"] = {
        name: {text: sorted({*versions}) for text, versions in texts.items() if versions}
        for name, texts in known.items()
        if family_of(name) and any(texts.values())
    }
    RECORDED.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    _read.cache_clear()


class Classes(Whole):
    """The conditions of a version; its connector may be of another release."""

    def wanted(self, minor: str) -> list[str]:
        return ["error classes"]

    def recorded(self, minor: str) -> list[str]:
        return ["error classes"] if minor in _read()["jars"] else []

    def ask_all(self, spark: Installed) -> None:
        record(spark.minor, [*spark.jars.glob("spark-common-utils_*.jar"), *connector_jars(spark.minor)])


SUITE = Classes()
if __name__ == "__main__":
    record(sys.argv[1], map(Path, sys.argv[2:]))
