"""The kinds of source that ckpt can ask, a line for each, and the rules for what each may answer."""

from typing import assert_never

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.plugins import PluginOffset
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.live.delta.ask import ask_delta
from ckpt.live.delta.outlook import foresee_delta
from ckpt.live.files.ask import ask_files
from ckpt.live.files.outlook import foresee_files
from ckpt.live.iceberg.ask import ask_iceberg
from ckpt.live.iceberg.outlook import foresee_iceberg
from ckpt.live.kafka.ask import ask_kafka
from ckpt.live.kafka.options import SERVERS
from ckpt.live.kafka.outlook import foresee_kafka
from ckpt.live.kind import LiveKind, NextRead
from ckpt.live.outlook import SourceOutlook
from ckpt.live.plugins import find_live_kind, foresee_plugin
from ckpt.live.records import DeltaNow, FilesNow, IcebergNow, KafkaNow, Now, PluginNow

_KIND_OF: dict[str, LiveKind] = {
    SourceType.KAFKA: LiveKind("the brokers", SERVERS, "HOST:PORT", ask_kafka, asked_for_query=True),
    SourceType.DELTA: LiveKind("the table", "path", "URI", ask_delta),
    SourceType.ICEBERG: LiveKind("the table", "path", "URI", ask_iceberg),
    SourceType.FILE: LiveKind("the folder", "path", "URI", ask_files),
}


def live_kind_of(view: SourceView) -> LiveKind | None:
    """Return the kind that asks a source; None where ckpt cannot ask it."""
    if isinstance(view.record, PluginOffset):
        return find_live_kind(view.record.kind)
    return _KIND_OF.get(view.type)


def foresee(start: NextRead, now: Now) -> SourceOutlook:
    """Foresee what the next start makes of a source that answered; pure."""
    match now:
        case KafkaNow():
            return foresee_kafka(start, now)
        case DeltaNow():
            return foresee_delta(start, now)
        case IcebergNow():
            return foresee_iceberg(start, now)
        case FilesNow():
            return foresee_files(start, now)
        case PluginNow():
            return foresee_plugin(start, now)
        case _:
            assert_never(now)
