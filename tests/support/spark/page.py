"""The README of the samples, made from the data that made them."""

from __future__ import annotations

import itertools
import json

from .damage import BUNDLED, DAMAGED
from .mutations import Mutation
from .queries import QUERIES
from .samples import ORIGIN, SAMPLES, Sample

_HEAD = f"""# Sample checkpoints

Real checkpoints, byte for byte as Spark wrote them (hidden checksums included), and damaged ones made from them.
Never edit a file here by hand: log files have no final newline, and every byte counts.
This command makes them again:

    python sample_checkpoints/make.py --spark 3.5=/path/to/python --spark 4.2=... [--only NAME ...]

The data behind this page is in `tests/support/spark/`: `queries.py` (what ran), `samples.py` (how), `damage.py` (how it was damaged).
`answers.json` contains what Spark's own state reader returns for every stateful sample.

All were written below `{ORIGIN}`, so that path is in the source logs of the file source and in the operator metadata of transformWithState and of joins from state format 3 on.
So the `tws-*`, `join-v3-*` and `join-v4-*` samples here are **moved** checkpoints.
A moved transformWithState query restarts only at its old path.
A moved join restarts anywhere (measured on 4.2.0 and 4.3.0) and writes its schema again; until then the state reader fails with `STDS_FAILED_TO_READ_STATE_SCHEMA`.
Git keeps no empty folders, so they are missing here.

## As Spark left them

"Starts" are starts with `availableNow`, with one batch of data each for the rate source; "one run" is one query that made snapshots in the background.

| sample | Spark | query | state store | how | what it is for |
|---|---|---|---|---|---|
"""  # noqa: E501  # one sentence a line

_MIDDLE = f"""
## Damaged

Each is one of the samples above after the mutations in the last column.
Only those that the documentation shows are here: {", ".join(f"`{name}`" for name in BUNDLED)}.

    python -m tests.support.spark.made

makes all of them, as each run of the tests does, and prints the folder.

| sample | made from | what it represents | mutations |
|---|---|---|---|
"""

_RUNS = {
    "starts": "{0} starts",
    "steady": "one run to batch {0}",
    "killed": "SIGKILL in batch {0}",
    "async": "one run past batch {0}, asynchronous progress tracking",
    "continuous": "{0} s of continuous trigger",
    "real-time": "real-time mode to batch {0}",
}


def readme() -> str:
    """The complete page as Markdown."""
    healthy = "".join(_row(sample) for sample in SAMPLES)
    damaged = "".join(f"| `{one.name}` | `{one.base}` | {one.about} | {_spelled(one.mutations)} |\n" for one in DAMAGED)
    return _HEAD + healthy + _MIDDLE + damaged


def _row(sample: Sample) -> str:
    how = _RUNS[sample.run].format(sample.count)
    if sample.run == "starts" and sample.count == 1:
        how = "one start"
    conf = "".join(f", `{key.removeprefix('spark.sql.streaming.')}={value}`" for key, value in sample.conf.items())
    store = sample.store or ("" if QUERIES[sample.query].stateful else "none")
    return f"| `{sample.name}` | {sample.spark} | `{sample.query}` | {store} | {how}{conf} | {sample.about} |\n"


def _spelled(mutations: tuple[Mutation, ...]) -> str:
    """`delete offsets/4, commits/5` and the like; paths of one operation in a row are put together."""
    words: list[str] = []
    for operation, group in itertools.groupby(mutations, key=lambda mutation: mutation["op"]):
        words.append(f"{operation.replace('_', ' ')} {', '.join(map(_object, group))}")
    return "; ".join(words)


def _object(mutation: Mutation) -> str:
    words = [f"`{mutation['path']}`"]
    if "to" in mutation:
        words.append(f"to `{mutation['to']}`")
    if "bytes" in mutation:
        size = mutation["bytes"]
        words.append(f"to {size} bytes" if size >= 0 else f"by {-size} bytes")
    if "text" in mutation:
        words.append(f"as {_quoted(mutation['text'])}")
    if "old" in mutation:
        words.append(f"{_quoted(mutation['old'])} by {_quoted(mutation['new'])}")
    if mutation.get("keep_crc"):
        words.append("(checksum kept)")
    return " ".join(words)


def _quoted(text: str) -> str:
    return f"`{json.dumps(text)[1:-1]}`".replace('\\"', '"') if text else "empty"
