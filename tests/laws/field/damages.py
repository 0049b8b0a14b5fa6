"""The damages, as cases of the oracle: which batch, partition or byte each hits is drawn with a seed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from tests.restart.oracle.cases import Case
from tests.restart.oracle.cases.model import (
    SAMPLES,
    Mutation,
    copy,
    delete,
    delete_logs,
    delete_tree,
    mkdir,
    move,
    truncate,
    write,
)
from tests.support.spark.samples import SAMPLES as MADE

SEED = 45
_ENDS = (".delta", ".snapshot", ".changelog", ".zip")
_QUERIES = {sample.name: sample.query for sample in MADE}
CHOSEN = (
    *("stateless-4.2", "async-4.2", "file-source-4.2", "kafka-4.2", "aggregation-hdfs-4.2"),
    *("aggregation-rocksdb-4.2", "aggregation-changelog-4.2", "aggregation-format2-4.2"),
)
_FROM_KAFKA = (SAMPLES / "kafka-4.2/offsets/5").read_text()
_FROM_RATE = (SAMPLES / "stateless-4.2/offsets/5").read_text()


@dataclass(frozen=True)
class Sample:
    """A sample, and the choices of one damage to it."""

    name: str
    rng: Random

    @cached_property
    def folder(self) -> Path:
        return SAMPLES / self.name

    @cached_property
    def batches(self) -> list[int]:
        """The planned batches, the newest first."""
        return sorted((int(path.name) for path in (self.folder / "offsets").glob("[0-9]*")), reverse=True)

    @property
    def newest(self) -> int:
        return self.batches[0]

    @property
    def stateful(self) -> bool:
        return (self.folder / "state").is_dir()

    @cached_property
    def partition(self) -> str:
        """One of the two partitions."""
        return f"state/0/{self.rng.randrange(2)}"

    def hidden(self, pattern: str) -> list[str]:
        """Checksum files that match."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern))

    def state_files(self, *ends: str, partition: str = "") -> list[str]:
        """The files of a partition with such endings, the newest version first."""
        folder = partition or self.partition
        names = [path.name for path in (self.folder / folder).glob("[0-9]*") if path.name.endswith(ends)]
        return sorted((f"{folder}/{name}" for name in names), key=lambda path: (-_version(path), path))


Harm = Callable[[Sample], list[Mutation] | None]
HARMS: dict[str, Harm] = {}


def _harm(name: str) -> Callable[[Harm], Harm]:
    def add(harm: Harm) -> Harm:
        assert name not in HARMS, name
        HARMS[name] = harm
        return harm

    return add


def _named(name: str, harm: Harm) -> None:
    _harm(name)(harm)


def _log(text: str, log: str = "offsets") -> Harm:
    return lambda s: [write(f"{log}/{s.newest}", text)]


def _with_crc(log: str) -> Harm:
    """Take away a newest file whose checksum stays, as somebody does who does not see hidden files."""
    return lambda s: delete(f"{log}/{s.newest}", keep_crc=True) if s.hidden(f"{log}/.{s.newest}.crc") else None


_named("newest offsets empty", _log(""))
_named("newest offsets cut", lambda s: [truncate(f"offsets/{s.newest}", s.rng.randrange(4, 60))])
_named("newest offsets garbled", _log("\x00\x17garbled"))
_named("newest offsets lost", lambda s: delete_logs([s.newest]))
_named("newest offsets lost, their checksum left", _with_crc("offsets"))
_named("newest offsets too large", _log("x" * 5_000_000))
_named("newest offsets of a newer version", _log("v9\n{}"))
_named("newest offsets of another query", lambda s: [write(f"offsets/{s.newest}", _other(s))])
_named("newest offsets renamed to .bak", lambda s: _renamed(s, f"{s.newest}.bak"))
_named("newest offsets renamed to a copy", lambda s: _renamed(s, f"{s.newest} (copy)"))
_named("newest offsets packed", lambda s: _packed(s))
_named("newest offsets overwritten by those before", lambda s: _overwritten(s))
_named("offsets before the newest lost", lambda s: delete_logs([s.batches[1]]))
_named("offsets before the newest and the newest commit lost", lambda s: delete_logs([s.batches[1]], [s.newest]))
_named("all offsets lost", lambda _: delete("offsets/[0-9]*"))
_named("newest commit lost", lambda s: delete_logs([], [s.newest]))
_named("newest commit empty", _log("", "commits"))
_named("newest commit cut after its first line", _log("v1\n", "commits"))
_named("newest commit lost, its checksum left", _with_crc("commits"))
_named("two to four commits lost", lambda s: delete_logs([], s.batches[: s.rng.randrange(2, 5)]))
_named("all commits lost", lambda _: delete("commits/[0-9]*"))
_named("newest batch deleted", lambda s: delete_logs([s.newest], [s.newest]))
_named("newest batch deleted, its checksums left", lambda s: _both_kept(s))
_named("logs wiped", lambda _: _emptied("offsets", "commits"))
_named("checkpoint wiped", lambda s: _emptied("offsets", "commits", "state") if s.stateful else None)
_named("metadata lost", lambda _: delete("metadata"))
_named("metadata lost, its checksum left", lambda s: delete("metadata", keep_crc=True))
_named("metadata empty", lambda _: [write("metadata", "")])
_named("metadata of another query", lambda _: [write("metadata", '{"id":"00000000-0000-4000-8000-000000000007"}')])
_named("a folder in place of the next offsets", lambda s: [mkdir(f"offsets/{s.newest + 1}")])
_named("checksum of the next offsets left over", lambda s: [_leftover(s, "offsets", f".{s.newest + 1}.crc")])
_named("checksum of the next commit left over", lambda s: [_leftover(s, "commits", f".{s.newest + 1}.crc")])
_named("temporary file of a killed driver", lambda s: [_leftover(s, "offsets", f".{s.newest + 1}.5c1f2ab6.tmp")])
_named("a log entry of the source lost", lambda s: delete("sources/0/10") if s.name.startswith("file") else None)
_named("16 wrong bytes in the newest state file", lambda s: _flipped(s) if s.stateful else None)
_named("newest state file cut", lambda s: _of_state(s, lambda path: [truncate(path, -s.rng.randrange(20, 60))]))
_named("newest state file lost", lambda s: _of_state(s, lambda path: delete(path)))
_named("newest state files lost in every partition", lambda s: _everywhere(s))
_named("several older state files lost", lambda s: _chain(s) if s.stateful else None)
_named("state of an older copy", lambda s: _older(s) if s.stateful else None)
_named("a partition lost", lambda s: delete_tree(s.partition) if s.stateful else None)
_named("a partition overwritten by another", lambda s: _exchanged(s, ("1", "0")) if s.stateful else None)
_named(
    "two partitions exchanged", lambda s: _exchanged(s, ("0", "new"), ("1", "0"), ("new", "1")) if s.stateful else None
)
_named("state/ lost", lambda s: delete_tree("state") if s.stateful else None)
_named("state schemas lost", lambda s: delete("state/0/0/_metadata/schema") if _has_schema(s) else None)
_named("an SST file lost", lambda s: _sst(s, lambda path: delete(path)))


def _other(sample: Sample) -> str:
    return _FROM_RATE if sample.name.startswith("kafka") else _FROM_KAFKA


def _leftover(sample: Sample, log: str, name: str) -> Mutation:
    data = (sample.folder / log / f".{sample.newest}.crc").read_bytes()
    return write(f"{log}/{name}", data)


def _renamed(sample: Sample, name: str) -> list[Mutation]:
    return [{**move(f"offsets/{sample.newest}", f"offsets/{name}"), "keep_crc": True}]


def _packed(sample: Sample) -> list[Mutation]:
    data = gzip.compress((sample.folder / "offsets" / str(sample.newest)).read_bytes(), mtime=0)
    return [
        *delete(f"offsets/{sample.newest}", keep_crc=True),
        write(f"offsets/{sample.newest}.gz", data),
    ]


def _overwritten(sample: Sample) -> list[Mutation]:
    newest, before = (f"offsets/{batch}" for batch in sample.batches[:2])
    return [copy(before, newest) | {"keep_crc": True}]


def _exchanged(sample: Sample, *moves: tuple[str, str]) -> list[Mutation]:
    """Move folders of partitions, or copy one over another where it is the only one."""
    if len(moves) == 1:
        return [*delete_tree("state/0/0"), copy("state/0/1", "state/0/0")]
    return [move(f"state/0/{old}", f"state/0/{new}") for old, new in moves]


def _both_kept(sample: Sample) -> list[Mutation] | None:
    both = [f"{log}/{sample.newest}" for log in ("offsets", "commits")]
    return delete(*both, keep_crc=True) if sample.hidden(f"offsets/.{sample.newest}.crc") else None


def _emptied(*folders: str) -> list[Mutation]:
    return [*delete_tree(*folders), *map(mkdir, folders)]


def _of_state(sample: Sample, harm: Callable[[str], list[Mutation]]) -> list[Mutation] | None:
    return harm(sample.state_files(".delta", ".changelog", ".zip")[0]) if sample.stateful else None


def _flipped(sample: Sample) -> list[Mutation]:
    """Bytes in the middle of what holds the rows: a zip, a delta or a changelog."""
    path = sample.state_files(".delta", ".changelog", ".zip")[0]
    size = (sample.folder / path).stat().st_size
    return [{"op": "flip", "path": path, "at": size // 2 - sample.rng.randrange(8), "hex": "5a" * 16}]


def _everywhere(sample: Sample) -> list[Mutation] | None:
    if not sample.stateful:
        return None
    files = [path for n in range(2) for path in sample.state_files(*_ENDS, partition=f"state/0/{n}")]
    newest = max(map(_version, files))
    return delete(*(path for path in files if _version(path) == newest))


def _version(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0].partition("_")[0])


def _chain(sample: Sample) -> list[Mutation]:
    """Lose all that is newer than the oldest file, but the newest."""
    files = sample.state_files(*_ENDS)
    newest, oldest = _version(files[0]), _version(files[-1])
    return delete(*(path for path in files if oldest < _version(path) < newest))


def _older(sample: Sample) -> list[Mutation]:
    """Lose what the newest batches have written, in every partition."""
    files = [path for n in range(2) for path in sample.state_files(*_ENDS, partition=f"state/0/{n}")]
    kept = max(map(_version, files)) - sample.rng.randrange(2, 4)
    return delete(*(path for path in files if _version(path) > kept))


def _has_schema(sample: Sample) -> bool:
    return (sample.folder / "state/0/0/_metadata/schema").exists()


def _sst(sample: Sample, harm: Callable[[str], list[Mutation]]) -> list[Mutation] | None:
    found = sorted(sample.folder.glob("state/0/*/SSTs/*.sst"))
    return harm(sample.rng.choice(found).relative_to(sample.folder).as_posix()) if found else None


def make_cases(seed: int = SEED) -> Iterator[Case]:
    """Each damage on each sample that it fits."""
    for name in CHOSEN:
        for title, harm in HARMS.items():
            sample = Sample(name, Random(f"{seed} {name} {title}"))
            mutations = harm(sample)
            if mutations is not None:
                yield Case(f"{title}: {name}", name, tuple(mutations), _QUERIES[name])


CASES = tuple(make_cases())
