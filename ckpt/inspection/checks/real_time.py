"""The demands of real-time mode on a session and a query (``RealTimeStreamExecution``, ``STREAMING_REAL_TIME_MODE``).

Measured on 4.1, 4.2 and 4.3 (``tests/restart/realtime``).
"""

from collections.abc import Iterator, Mapping, Sequence

from ckpt import settings
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.formats.names import parse_java_int
from ckpt.query.description import QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.restart.own_triggers import OPERATORS, REFUSED_SOURCES
from ckpt.versions import Spark

UNSEEN = (
    "the sink, which must be Kafka, foreach or the console; the interval, at least 5 seconds; and whether Spark has a "
    "slot for each source partition and each shuffle partition at once, as real-time mode needs"
)


def compare_real_time(
    query: QueryDescription | None, session: Mapping[str, str], versions: Sequence[Spark]
) -> Iterator[Finding]:
    """Find settings of the session, and parts of the query, that real-time mode refuses before it writes anything."""
    reasons = [*_list_reasons(query, session, versions)]
    if reasons:
        yield Finding(diagnoses.modes.NOT_FOR_REAL_TIME, "", "; ".join(reasons))


def _list_reasons(
    query: QueryDescription | None, session: Mapping[str, str], versions: Sequence[Spark]
) -> Iterator[str]:
    keeps_state = any(version.rules.real_time_state for version in versions)
    if keeps_state:
        yield from _compare_settings(session)
    if query is None:
        return
    if query.output_mode.lower() != "update":
        yield f"its output mode is {query.output_mode}, but real-time mode needs update"
    for index, source in enumerate(query.sources):
        if source.kind in REFUSED_SOURCES:
            yield f"source {index} is {source.kind}, but real-time mode reads only Kafka"
        for option in source.limits if source.kind == SourceType.KAFKA else ():
            yield f"source {index} has the option {option}"
    for operator in query.operators or ():
        if operator.name not in OPERATORS or not keeps_state:
            yield f"it has the operator {operator.name}"


def _compare_settings(session: Mapping[str, str]) -> Iterator[str]:
    """Spark compares settings that the session has itself, not their defaults."""
    provider = session.get(settings.PROVIDER_CLASS)
    if provider not in (None, settings.ROCKSDB_PROVIDER):
        yield f"the session sets {settings.PROVIDER_CLASS}, but not to RocksDB"
    version = session.get(settings.CHECKPOINT_FORMAT)
    number = None if version is None else parse_java_int(version.strip())
    if number is not None and number < 2:
        yield f"the session sets {settings.CHECKPOINT_FORMAT}={number}, below 2"


def list_untried(query: QueryDescription | None) -> Iterator[str]:
    """List the sources that real-time mode may not read: no Spark was asked."""
    for index, source in enumerate(query.sources if query is not None else ()):
        if source.kind != SourceType.KAFKA and source.kind not in REFUSED_SOURCES:
            yield f"real-time mode was not tried with source {index}, {source.kind}"
