"""Checkpoints with gaps, as data, and as real files made of the bytes of real samples.

The end of every batch follows from its id, for batches without a file too, so that a test knows which rows a start
reads without asking ckpt.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ckpt.formats.offsets import format_offset_log, parse_offset_log
from ckpt.formats.sidecars import build_hadoop_sidecar
from ckpt.model import OffsetLog, OffsetMetadata, SourceOffset
from tests.support.places import SAMPLES

STATELESS, NAMED, STATEFUL = "async-kafka-4.2", "two-sources-offsets-v2-4.2", "aggregation-hdfs-4.2"
DAMAGES: Mapping[str, Any] = {
    "empty": lambda raw: b"",
    "truncated": lambda raw: raw[: len(raw) // 2],
    "v9": lambda raw: b"v9" + raw[2:],
    "garbage": lambda raw: b"\0\xff\0" * 9,
    "version only": lambda raw: raw[:2],
}


@dataclass(frozen=True)
class Gap:
    """One checkpoint: which batches have files, and what is wrong with some of them."""

    offsets: tuple[int, ...]
    commits: tuple[int, ...]
    damaged: Mapping[str, str] = field(default_factory=dict)  # path -> name of a damage
    checksums: bool = False  # hidden checksum files, as on local paths
    orphans: tuple[str, ...] = ()  # files whose checksum file is there, and they are not
    stale: tuple[str, ...] = ()  # files whose checksum file is another one's
    sources: int = 1
    version: int = 1  # of the offset log
    idle: bool = False  # two of three batches have no rows
    stateful: bool = False  # a real sample with state, of which only some log files are left

    def end(self, batch_id: int) -> list[Any]:
        """Where each source stands at the end of a batch, with a file or without."""
        rows = 10 * (batch_id - batch_id % 3 if self.idle else batch_id)
        return [{"orders": {"0": rows + source, "1": 2 * rows}} for source in range(self.sources)]

    def build(self, top: Path) -> Path:
        """Write it into a new folder."""
        if self.stateful:
            shutil.copytree(SAMPLES / STATEFUL, top)
            for name, kept in (("offsets", self.offsets), ("commits", self.commits)):
                for file in (top / name).iterdir():
                    if int(file.name.removeprefix(".").removesuffix(".crc")) not in kept:
                        file.unlink()
        else:
            for folder in ("offsets", "commits"):
                (top / folder).mkdir(parents=True)
            shutil.copyfile(SAMPLES / STATELESS / "metadata", top / "metadata")
            commit = (SAMPLES / STATELESS / "commits" / "31").read_bytes()
            for batch_id in self.offsets:
                (top / "offsets" / str(batch_id)).write_bytes(self._offsets(batch_id))
            for batch_id in self.commits:
                (top / "commits" / str(batch_id)).write_bytes(commit)
        self._damage(top)
        return top

    def _damage(self, top: Path) -> None:
        for path, kind in self.damaged.items():
            (top / path).write_bytes(DAMAGES[kind]((top / path).read_bytes()))
        if self.checksums:
            for folder in ("offsets", "commits"):
                for file in [*(top / folder).glob("[0-9]*")]:
                    _sidecar(file).write_bytes(build_hadoop_sidecar(file.read_bytes()))
        for path in self.orphans:
            _sidecar(top / path).write_bytes(build_hadoop_sidecar(b"gone"))
        for path in self.stale:
            _sidecar(top / path).write_bytes(build_hadoop_sidecar(b"another"))

    def _offsets(self, batch_id: int) -> bytes:
        sample = _template(self.version)
        assert sample.metadata is not None
        metadata = OffsetMetadata(0, 1_700_000_000_000 + 1000 * batch_id, sample.metadata.conf)
        ends = (str(end).replace("'", '"').replace(" ", "") for end in self.end(batch_id))
        named = self.version == 2
        sources = tuple(SourceOffset(str(i) if named else None, text, None) for i, text in enumerate(ends))
        return format_offset_log(replace(sample, metadata=metadata, sources=sources))


def _sidecar(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


@cache
def _template(version: int) -> OffsetLog:
    file = SAMPLES / (STATELESS if version == 1 else NAMED) / "offsets" / ("31" if version == 1 else "1")
    log = parse_offset_log(str(file), file.read_bytes())
    assert isinstance(log, OffsetLog)
    return log


@st.composite
def gaps(draw: st.DrawFn) -> Gap:
    """Any pattern, most of them with a gap before the latest batch."""
    if draw(st.integers(0, 9)) == 0:
        return draw(_stateful())
    offsets = draw(_ids())
    commits = draw(_commits(offsets))
    files = [f"offsets/{i}" for i in offsets] + [f"commits/{i}" for i in commits]
    newest = [f"offsets/{i}" for i in offsets[-3:]] + [f"commits/{i}" for i in commits[-2:]]
    hurt = draw(
        st.lists(st.sampled_from(newest) | st.sampled_from(files), max_size=draw(st.sampled_from([0, 0, 1, 3])))
    )
    checksums = draw(st.booleans())
    missing = [f"{folder}/{i}" for folder in ("offsets", "commits") for i in range(offsets[-1] - 2, offsets[-1] + 3)]
    orphans = draw(st.lists(st.sampled_from(missing), max_size=draw(st.sampled_from([0, 0, 2])), unique=True))
    version = draw(st.sampled_from([1, 1, 1, 2]))
    return Gap(
        offsets,
        commits,
        {path: draw(st.sampled_from(sorted(DAMAGES))) for path in hurt},
        checksums,
        tuple(path for path in orphans if path not in files and not path.endswith("/-1") and "-" not in path),
        tuple(draw(st.lists(st.sampled_from(files), max_size=2))) if checksums else (),
        sources=draw(st.integers(1, 3)),
        version=version,
        idle=draw(st.booleans()),
    )


@st.composite
def _ids(draw: st.DrawFn) -> tuple[int, ...]:
    """The batches that have offsets: as asynchronous tracking leaves them, some of a run, or only one."""
    match draw(st.sampled_from(["async", "async", "async", "subset", "one", "pairs"])):
        case "async":
            first = draw(st.sampled_from([0, 0, 0, 17, 1000]))
            steps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
            return tuple(first + sum(steps[:count]) for count in range(len(steps) + 1))
        case "one":
            return (draw(st.sampled_from([0, 1, 2, 40])),)
        case "pairs":
            starts = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True))
            return tuple(sorted({3 * start + more for start in starts for more in (0, 1)} | {40}))
    return tuple(sorted(draw(st.sets(st.integers(0, 25), min_size=1, max_size=12))))


@st.composite
def _commits(draw: st.DrawFn, offsets: Sequence[int]) -> tuple[int, ...]:
    """All committed, the latest not, some, only the first ones, or more than were planned."""
    match draw(st.sampled_from(["all", "all", "but the latest", "but the latest", "some", "behind", "ahead", "none"])):
        case "all":
            return tuple(offsets)
        case "but the latest":
            return tuple(offsets[:-1])
        case "some":
            return tuple(i for i in offsets if draw(st.booleans()))
        case "behind":
            return tuple(offsets[: draw(st.integers(0, len(offsets)))])
        case "ahead":
            more = draw(st.sets(st.integers(0, offsets[-1] + 4), min_size=1, max_size=3))
            return tuple(sorted({*offsets, *more}))
    return ()


@st.composite
def _stateful(draw: st.DrawFn) -> Gap:
    """A real query with state, with files of its logs lost below the latest batch."""
    kept = draw(st.sets(st.integers(0, 7), max_size=8))
    offsets = tuple(sorted({*kept, 9}))
    commits = tuple(i for i in range(10) if i in draw(st.sampled_from([offsets, offsets[:-1], range(10), range(9)])))
    checksums = draw(st.booleans())
    return Gap(offsets, commits, checksums=checksums, stateful=True)
