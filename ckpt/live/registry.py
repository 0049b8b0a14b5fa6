"""The kinds of source that ckpt can ask, a line for each."""

from typing import Any

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.live.delta.ask import ask_delta
from ckpt.live.delta.outlook import foresee_delta
from ckpt.live.files.ask import ask_files
from ckpt.live.files.outlook import foresee_files
from ckpt.live.iceberg.ask import ask_iceberg
from ckpt.live.iceberg.outlook import foresee_iceberg
from ckpt.live.kafka.ask import ask_kafka
from ckpt.live.kafka.options import SERVERS
from ckpt.live.kafka.outlook import foresee_kafka
from ckpt.live.kind import LiveKind
from ckpt.live.records import DeltaNow, FilesNow, IcebergNow, KafkaNow

_PATH = "path=URI"
_KINDS: tuple[LiveKind[Any], ...] = (
    LiveKind(SourceType.KAFKA, KafkaNow, "the brokers", f"{SERVERS}=HOST:PORT", ask_kafka, foresee_kafka),
    LiveKind(SourceType.DELTA, DeltaNow, "the table", _PATH, ask_delta, foresee_delta),
    LiveKind(SourceType.ICEBERG, IcebergNow, "the table", _PATH, ask_iceberg, foresee_iceberg),
    LiveKind(SourceType.FILE, FilesNow, "the folder", _PATH, ask_files, foresee_files),
)
KIND_OF_TYPE: dict[str, LiveKind[Any]] = {kind.source_type: kind for kind in _KINDS}
KIND_OF_ANSWER = {kind.answer: kind for kind in _KINDS}
