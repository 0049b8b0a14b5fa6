"""What a sink has written, by its own log: ``ckpt inspect --sink``. Reads that one place, and never writes."""

from ckpt.sinklog.reading import read_sink, sink_of
from ckpt.sinklog.records import SinkKind, SinkLog, SinkWriter

__all__ = ["SinkKind", "SinkLog", "SinkWriter", "read_sink", "sink_of"]
