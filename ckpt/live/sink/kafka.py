"""A Kafka topic as a sink: nothing is read, because it keeps no batch ids."""

from collections.abc import Mapping

from ckpt.live.sink.records import SinkKind, SinkLog

_UNKNOWN = (
    "a Kafka topic keeps no batch ids, so what it has cannot be known; it accepts every row, so rows that are read "
    "again are written again"
)


def recognise_topic(uri: str, storage_options: Mapping[str, str]) -> SinkLog | None:
    """Return the record of a topic; None where the URI is not one of Kafka."""
    is_topic = uri.lower().startswith(("kafka:", "kafka+"))
    return SinkLog(uri, SinkKind.KAFKA, unknown=_UNKNOWN) if is_topic else None
