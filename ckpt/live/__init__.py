"""What the sources of a query have now: ``ckpt inspect --sources``. It only asks, and for seconds only."""

from ckpt.live.asking import ask_sources
from ckpt.live.options import source_options
from ckpt.live.records import DeltaNow, FilesNow, KafkaNow, LiveSource, PartitionNow, TopicNow

__all__ = [
    "DeltaNow",
    "FilesNow",
    "KafkaNow",
    "LiveSource",
    "PartitionNow",
    "TopicNow",
    "ask_sources",
    "source_options",
]
