"""Line ends that git has changed (core.autocrlf), and lines that an editor adds to the log of a source."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, delete, delete_logs, latest, replace
from .operators import HOMES, QUERIES

_SAMPLES = ("stateless-3.5", "file-source-4.2", "aggregation-hdfs-4.2", "join-v3-changelog-4.2")
_CHANGED = {"op": "line_ends", "path": "**/*", "keep_crc": True}
_AGGREGATION = "aggregation-hdfs-4.2"
_FILES = "file-source-4.2"


def cases() -> Iterator[Case]:
    for sample in _SAMPLES:
        yield Case(f"{sample}-line-ends", sample, (*HOMES[sample], _CHANGED), QUERIES[sample], sync_only=True)
    without = (_CHANGED, *delete("**/.*.crc", keep_crc=True), *delete_logs(commits=[latest(_AGGREGATION)]))
    name = f"{_AGGREGATION}-line-ends-without-checksums-uncommitted"
    yield Case(name, _AGGREGATION, without, QUERIES[_AGGREGATION], sync_only=True)
    for name, end in {"newline": "}\n", "blank-line": "}\n\n"}.items():
        damage = (*HOMES[_FILES], replace("sources/0/11", "}", end))
        yield Case(f"{_FILES}-log-{name}-at-end", _FILES, damage, QUERIES[_FILES], sync_only=True)
