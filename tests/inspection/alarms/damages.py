"""Seeded damages to samples: files that can be read and say what is not so, as data."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from tests.restart.oracle.cases.model import SAMPLES, Mutation, copy, delete, delete_tree, latest, replace, write
from tests.restart.oracle.cases.operators import HOMES
from tests.restart.oracle.cases.untrue import FAR, LONG, SETTINGS, exchange, recorded
from tests.support.spark.queries import INPUTS
from tests.support.spark.samples import SAMPLES as DECLARED, Sample

COUNT = 300
ACROSS = 3
"""Each third damage is started on every version that can run the query, the others on 4.2 only."""
_SEED = 26
OF_VARIABLES = 36
"""Damages to samples of transformWithState, besides; started on 4.2, where they can be, and 4.3."""


@dataclass(frozen=True)
class Damage:
    """A damage to a copy of a sample; without edits it is the control, with whose rows the others are compared."""

    name: str
    sample: str
    mutations: tuple[Mutation, ...]
    everywhere: bool  # it is started on every version


def _usable() -> list[Sample]:
    """Samples that Spark 4.2 starts without a service, and whose rows do not depend on the clock."""
    return [
        sample
        for sample in DECLARED
        if sample.spark <= "4.2"
        and sample.run in ("starts", "steady")
        and sample.query not in ("delta", "kafka", "transform-with-state")
    ]


USABLE = {sample.name: sample for sample in _usable()}
WITH_VARIABLES = {sample.name: sample for sample in DECLARED if sample.query.startswith("transform-with-state")}
STARTED = USABLE | WITH_VARIABLES


def _stores(sample: str) -> list[str]:
    """The folders of stores in partition 0 of operator 0 of a sample, without those of operators that keep none."""
    root = SAMPLES / sample / "state" / "0" / "0"
    named = [path.name for path in root.glob("*-*") if path.is_dir()]
    return sorted(named) or [""]


@cache
def _files(sample: str, kinds: str = "delta|snapshot|changelog|zip") -> list[Path]:
    root = SAMPLES / sample
    files = (path for path in root.glob("state/**/*") if re.fullmatch(rf"\d+(_.*)?\.({kinds})", path.name))
    return sorted(path.relative_to(root) for path in files)


def _text(sample: str, path: str) -> str:
    return (SAMPLES / sample / path).read_text()


def _exchange_partitions(rng: Random, sample: str) -> list[Mutation]:
    operator = rng.choice(sorted(path.name for path in (SAMPLES / sample / "state").iterdir()))
    if not (SAMPLES / sample / "state" / operator / "1").is_dir():
        return []
    if rng.random() < 0.3:
        return [*delete_tree(f"state/{operator}/1"), copy(f"state/{operator}/0", f"state/{operator}/1")]
    return exchange(f"state/{operator}/0", f"state/{operator}/1")


def _exchange_stores(rng: Random, sample: str) -> list[Mutation]:
    stores = _stores(sample)
    if len(stores) < 2:
        return []
    first, second = rng.sample(stores, 2)
    partitions = rng.choice([(0,), (1,), (0, 1)])
    return [step for p in partitions for step in exchange(f"state/0/{p}/{first}", f"state/0/{p}/{second}")]


def _exchange_store_partitions(rng: Random, sample: str) -> list[Mutation]:
    store = rng.choice(_stores(sample))
    return exchange(f"state/0/0/{store}", f"state/0/1/{store}") if store else []


def _exchange_operators(_: Random, sample: str) -> list[Mutation]:
    return exchange("state/0", "state/1") if (SAMPLES / sample / "state" / "1").is_dir() else []


_OPERATOR_EDITS = (
    (r'"operatorId":\d+', ('"operatorId":1', '"operatorId":7', '"operatorId":-1')),
    (r'"operatorName":"[^"]*"', ('"operatorName":"dedupe"', '"operatorName":"symmetricHashJoin"')),
    (r'"storeName":"[^"]*"', ('"storeName":"other"', '"storeName":"default"')),
    (r'"numColsPrefixKey":\d+', ('"numColsPrefixKey":1', '"numColsPrefixKey":0')),
    (r'"numPartitions":\d+', ('"numPartitions":1', '"numPartitions":5', '"numPartitions":0')),
)


def _edit_operator(rng: Random, sample: str) -> list[Mutation]:
    root = SAMPLES / sample
    files = [*root.glob("state/*/_metadata/metadata"), *root.glob("state/*/_metadata/v2/[0-9]*")]
    if not files:
        return []
    file = rng.choice(sorted(files))
    pattern, values = rng.choice(_OPERATOR_EDITS)
    old = re.search(pattern, file.read_text())
    new = rng.choice(values)
    return [replace(str(file.relative_to(root)), old[0], new)] if old and old[0] != new else []


_TYPES = {
    '"long"': ('"void"', '"date"'),
    '"boolean"': ('"integer"',),
    '"string"': ('"double"', '"binary"'),
    '"timestamp"': ('"timestump"',),
    '"integer"': ('"boolean"',),
    '"nullable":true': ('"nulloble":true',),
    '"name":"k': ('"name":"q',),
    '"name":"v': ('"name":"w',),
    '"name":"c': ('"name":"d',),
}


def _edit_schema(rng: Random, sample: str) -> list[Mutation]:
    root = SAMPLES / sample
    file = rng.choice(
        sorted([*root.glob("state/*/0/**/_metadata/schema"), *root.glob("state/*/_stateSchema/*/[0-9]*")])
    )
    content = file.read_bytes()
    old = rng.choice([old for old in _TYPES if old.encode() in content])
    return [replace(str(file.relative_to(root)), old, rng.choice(_TYPES[old]))]


_PROPERTY_EDITS = (
    (r'\\"stateName\\":\\"rows\\"', (r"\"stateName\":\"lines\"", r"\"stateName\":\"last\"")),
    (r'\\"stateVariableType\\":\\"\w+\\"', tuple(rf"\"stateVariableType\":\"{k}State\"" for k in ("Map", "List"))),
    (r'\\"ttlEnabled\\":\w+', (r"\"ttlEnabled\":true", r"\"ttlEnabled\":false")),
    (r'\\"timeMode\\":\\"\w+\\"', tuple(rf"\"timeMode\":\"{mode}\"" for mode in ("NoTime", "EventTime"))),
    (r'\\"outputMode\\":\\"\w+\\"', (r"\"outputMode\":\"Update\"", r"\"outputMode\":\"Complete\"")),
)


def _edit_properties(rng: Random, sample: str) -> list[Mutation]:
    """Another name, kind or mode in the newest operator metadata of transformWithState."""
    folder = SAMPLES / sample / "state/0/_metadata/v2"
    if not folder.is_dir():
        return []
    path = f"state/0/_metadata/v2/{max(int(path.name) for path in folder.glob('[0-9]*'))}"
    pattern, values = rng.choice(_PROPERTY_EDITS)
    old, new = re.search(pattern, _text(sample, path)), rng.choice(values)
    return [replace(path, old[0], new)] if old and old[0] != new else []


def _lose_metadata(rng: Random, sample: str) -> list[Mutation]:
    """Operator metadata that is gone, or exchanged with that of another batch."""
    folder = "state/0/_metadata/v2"
    batches = sorted(int(path.name) for path in (SAMPLES / sample / folder).glob("[0-9]*"))
    if len(batches) < 2:
        return []
    first, last = f"{folder}/{batches[0]}", f"{folder}/{batches[-1]}"
    return rng.choice([[*delete(last)], [*delete(first)], [copy(first, last)], [*delete(f"{folder}/[0-9]*")]])


def _edit_setting(rng: Random, sample: str) -> list[Mutation]:
    name = rng.choice(sorted(SETTINGS))
    return recorded(sample, name, rng.choice(SETTINGS[name]))


def _edit_file_log(rng: Random, sample: str) -> list[Mutation]:
    if not sample.startswith("file-source"):
        return []
    name = rng.choice(["9.compact", "10", "11"])
    lines = [json.loads(line) for line in _text(sample, f"sources/0/{name}").splitlines()[1:]]
    entry = rng.choice(lines)
    key, value = rng.choice(
        [
            *(("timestamp", value) for value in (0, -1, 1, FAR, LONG, None, "x", entry["timestamp"] + 1000)),
            *(("path", value) for value in (None, "", "x", "file:///nowhere/part-99.json", entry["path"] + "x")),
            *(("batchId", value) for value in (0, -1, 5, 99, LONG, None, "x")),
        ]
    )
    entry[key] = value
    text = "\n".join(["v1", *(json.dumps(line, separators=(",", ":")) for line in lines)])
    home = [replace(f"sources/0/{name}", str(INPUTS), "{folder}/inputs")] if str(INPUTS) in text else []
    return [write(f"sources/0/{name}", text), *home]


def _edit_ids(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    body = json.loads(_text(sample, f"commits/{last}").splitlines()[1])
    if not body.get("stateUniqueIds"):
        return []
    older = json.loads(_text(sample, f"commits/{last - 1}").splitlines()[1])["stateUniqueIds"]
    ids = body["stateUniqueIds"]["0"]
    unknown = str(uuid.UUID(int=rng.getrandbits(128)))
    forms: list[object] = [
        {"0": [[*ids[0], *older["0"][0]], *ids[1:]]},
        {"0": [*ids[:1], [*older["0"][1], *ids[1]]]},
        {"0": ids[::-1]},
        older,
        {"0": ids, "1": ids},
        {"0": [*ids, ids[0]]},
        {"0": ids[:1]},
        {"0": [[unknown], *ids[1:]]},
        {"0": [ids[0] * 2, *ids[1:]]},
        {"0": [[], *ids[1:]]},
        {},
        {"5": ids},
    ]
    body["stateUniqueIds"] = rng.choice(forms)
    return [write(f"commits/{last}", "v2\n" + json.dumps(body, separators=(",", ":")))]


def _edit_watermark(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    watermark = rng.choice([0, -1, FAR, LONG, 4_102_444_800, 1_700_000_000_000])
    edits = []
    for log, key in rng.choice([(("commits", "nextBatchWatermarkMs"),), (("offsets", "batchWatermarkMs"),)]):
        old = re.search(rf'"{key}":-?\d+', _text(sample, f"{log}/{last}"))
        if old and old[0] != f'"{key}":{watermark}':
            edits.append(replace(f"{log}/{last}", old[0], f'"{key}":{watermark}'))
    return edits


def _edit_time(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    old = re.search(r'"batchTimestampMs":\d+', _text(sample, f"offsets/{last}"))
    return [replace(f"offsets/{last}", old[0], f'"batchTimestampMs":{rng.choice([0, -1, FAR, LONG])}')] if old else []


def _edit_offset(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    path = f"offsets/{last}"
    lines = _text(sample, path).splitlines()
    at = rng.randrange(2, len(lines))
    line = lines[at]
    number = re.search(r'"(offset|logOffset)":(\d+)', line)
    assert number is not None
    value = int(number[2])
    edited = rng.choice(
        [
            *(
                line.replace(number[0], f'"{number[1]}":{new}')
                for new in (LONG, LONG - 3, LONG + 1, -1, f"{value}.0", f'"{value}"', "null", value + 1, value * 2)
            ),
            line + " x",
            line + "{}",
            line + "  ",
            "-",
            "",
            line.replace("{", '{"note":"x",', 1),
            line[:-1],
        ]
    )
    lines[at] = edited
    return [write(path, "\n".join(lines))]


def _edit_sources(rng: Random, sample: str) -> list[Mutation]:
    """Lines of sources exchanged, left out, twice, or under other names."""
    last = latest(sample)
    lines = _text(sample, f"offsets/{last}").splitlines()
    head, sources = lines[:2], lines[2:]
    if len(sources) < 2:
        return []
    first, second = sources
    forms = [[second, first], [first], [second], [first, second, second], [first, first]]
    if head[0] == "v2":
        forms += [
            [first, re.sub(r"^[^:]*:", "7:", second)],
            [first, second, "2:-"],
            [second, re.sub(r":.*", ":-", first)],
        ]
        forms += [[first, re.sub(r"^[^:]*:", "", second)]]
    lines = [*head, *rng.choice(forms)]
    if rng.random() < 0.2:
        lines[0] = "v1" if head[0] == "v2" else "v2"
    return [write(f"offsets/{last}", "\n".join(lines))]


def _replace_state_file(rng: Random, sample: str) -> list[Mutation]:
    """A file of a store replaced by that of another version, partition or store."""
    files = _files(sample)
    if not files:
        return []
    newest = max(int(re.match(r"\d+", file.name)[0]) for file in files)  # type: ignore[index]
    targets = [file for file in files if int(re.match(r"\d+", file.name)[0]) >= newest - 1]  # type: ignore[index]
    target = rng.choice(targets)
    others = [file for file in files if file.suffix == target.suffix and file != target]
    root = SAMPLES / sample
    other = [file for file in others if (root / file).read_bytes() != (root / target).read_bytes()]
    return [copy(str(rng.choice(other)), str(target))] if other else []


def _add_state_ahead(rng: Random, sample: str) -> list[Mutation]:
    newest = latest(sample) + 1
    ahead = newest + rng.choice([1, 2, 3])
    kinds = sorted({file.suffix for file in _files(sample)})
    if not kinds or "format2" in sample:
        return []
    kind = rng.choice(kinds)
    steps = []
    for folder in sorted({file.parent for file in _files(sample)}):
        versions = [int(file.stem) for file in _files(sample) if file.parent == folder and file.suffix == kind]
        if versions:
            steps.append(copy(f"{folder}/{max(versions)}{kind}", f"{folder}/{ahead}{kind}"))
    return steps


def _edit_commit(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    text = _text(sample, f"commits/{last}")
    version, body = text.split("\n", 1)
    fields = json.loads(body)
    forms = [
        f"{version}\n" + json.dumps({**fields, "note": "x"}),
        text + "\nx",
        text + " x",
        text + "\n",
        f"{version}\n" + json.dumps({key: value for key, value in fields.items() if key != "nextBatchWatermarkMs"}),
        f"{version}\n" + json.dumps({**fields, "nextBatchWatermarkMs": None}),
        f"{version}\n" + json.dumps({**fields, "nextBatchWatermarkMs": str(fields["nextBatchWatermarkMs"])}),
        "v2\n" + body if version == "v1" else "v1\n" + body,
        f"{version} \n{body}",
    ]
    return [write(f"commits/{last}", rng.choice(forms))]


def _exchange_logs(rng: Random, sample: str) -> list[Mutation]:
    last = latest(sample)
    if last < 2:
        return []
    return rng.choice(
        [
            exchange(f"offsets/{last}", f"offsets/{last - 1}"),
            exchange(f"commits/{last}", f"commits/{last - 1}"),
            [copy(f"offsets/{last - 1}", f"offsets/{last}")],
            [copy(f"offsets/{last}", f"offsets/{last - 1}")],
            [copy(f"commits/{last - 1}", f"commits/{last}")],
        ]
    )


def _edit_metadata(rng: Random, sample: str) -> list[Mutation]:
    own = json.loads(_text(sample, "metadata"))["id"]
    other = str(uuid.UUID(int=rng.getrandbits(128)))
    forms = [
        {"id": other},
        {"id": own, "note": "x"},
        {"id": own.upper()},
        {"id": own.replace("-", "")},
        {"id": f" {own}"},
        {"id": "1-2-3-4-5"},
    ]
    return [write("metadata", json.dumps(rng.choice(forms)))]


Kind = Callable[[Random, str], Sequence[Mutation]]
_STATEFUL: dict[str, tuple[Kind, int]] = {
    "partitions exchanged": (_exchange_partitions, 3),
    "stores exchanged": (_exchange_stores, 2),
    "partitions of a store exchanged": (_exchange_store_partitions, 1),
    "operators exchanged": (_exchange_operators, 1),
    "operator edited": (_edit_operator, 4),
    "schema edited": (_edit_schema, 4),
    "state file replaced": (_replace_state_file, 5),
    "state ahead": (_add_state_ahead, 3),
    "unique ids": (_edit_ids, 2),
}
_ANY: dict[str, tuple[Kind, int]] = {
    "setting edited": (_edit_setting, 7),
    "file log edited": (_edit_file_log, 4),
    "watermark edited": (_edit_watermark, 3),
    "time edited": (_edit_time, 1),
    "offset edited": (_edit_offset, 5),
    "sources edited": (_edit_sources, 3),
    "commit edited": (_edit_commit, 3),
    "logs exchanged": (_exchange_logs, 2),
    "id edited": (_edit_metadata, 1),
}


_OF_VARIABLES: dict[str, tuple[Kind, int]] = {
    **{name: (kind, weight) for name, (kind, weight) in _STATEFUL.items() if name != "operators exchanged"},
    **{name: _ANY[name] for name in ("setting edited", "watermark edited", "offset edited", "logs exchanged")},
    "properties edited": (_edit_properties, 6),
    "metadata lost": (_lose_metadata, 3),
}


@cache
def damages() -> tuple[Damage, ...]:
    """Every damage, the same in every run; first the samples as they are."""
    intact = (Damage(f"{name} as it is", name, tuple(HOMES[name]), everywhere=True) for name in STARTED)
    seeded = _seeded(_SEED, range(COUNT), _STATEFUL | _ANY, USABLE)
    of_variables = _seeded(_SEED + 1, range(COUNT, COUNT + OF_VARIABLES), _OF_VARIABLES, WITH_VARIABLES)
    return (*intact, *seeded, *of_variables)


def _seeded(
    seed: int, numbers: range, kinds: Mapping[str, tuple[Kind, int]], samples: Iterable[str]
) -> Iterator[Damage]:
    rng = Random(seed)
    names, weights = [*kinds], [weight for _, weight in kinds.values()]
    made: set[str] = set()
    stateful = [sample for sample in samples if (SAMPLES / sample / "state").is_dir()]
    number = numbers.start
    while number < numbers.stop:
        name = rng.choices(names, weights)[0]
        fitting = [*samples] if name in _ANY else stateful
        for sample in rng.sample(fitting, len(fitting)):
            if steps := kinds[name][0](rng, sample):
                break
        else:
            continue
        of = json.dumps([sample, steps])
        if of not in made:
            made.add(of)
            mutations = (*HOMES[sample], *steps)
            yield Damage(f"{number:03} {name} in {sample}", sample, mutations, everywhere=not number % ACROSS)
            number += 1
