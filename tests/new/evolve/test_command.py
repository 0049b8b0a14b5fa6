"""``ckpt evolve`` from the terminal: what it prints, exits with, and leaves behind, on real samples."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.formats.offsets import CHANGING
from ckpt.formats.types import struct_of
from ckpt.query.compare_checkpoint import next_watermark_of, watermark_of
from ckpt.query.description import (
    DescribedAggregate,
    DescribedBuffer,
    DescribedExpression,
    DescribedFamily,
    DescribedOperator,
    DescribedSource,
    DescribedStore,
    QueryDescription,
)
from ckpt.versions import Spark
from tests.changes.applying import after_next, facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.evolve.record import describe_operators
from tests.support.places import SAMPLES

FILES, STATEFUL, NAMED = "file-source-4.2", "aggregation-hdfs-4.2", "named-sources-4.2"
OLD = DescribedSource("file", path="/tmp/ckpt-samples/inputs/file-source")
MORE = DescribedSource("file", path="/tmp/more")
RATE = DescribedSource("rate-micro-batch")
Describe = Callable[..., Path]


@pytest.fixture
def describe(tmp_path: Path) -> Describe:
    """Write ``query.json`` of a query with these sources, and the operators of a sample."""

    def write(*sources: DescribedSource, like: str | None = None, **changes: Any) -> Path:
        operators = describe_operators(str(SAMPLES / like)) if like else ()
        file = tmp_path / "query.json"
        query = QueryDescription(Spark.V4_2, "update", sources, operators, None, None, {})
        file.write_text(json.dumps({**json.loads(query.to_json()), **changes}))
        return file

    return write


def lines_of(checkpoint: Path, batch: int) -> list[str]:
    """Return the lines of sources in an offset file."""
    return (checkpoint / "offsets" / str(batch)).read_text().split("\n")[2:]


def test_a_new_checkpoint_has_the_source_and_the_old_one_is_only_read(
    ckpt: Ckpt, copy_of: CopyOf, describe: Describe, tmp_path: Path
) -> None:
    checkpoint, new = copy_of(FILES), tmp_path / "new"
    before, query = facts(checkpoint), describe(MORE, OLD)

    planned = ckpt("evolve", checkpoint, new, "--to", query, "--plan")
    assert planned.exit_code == 0
    assert not new.exists()
    done = ckpt(*after_next(planned.stdout))
    assert (done.exit_code, facts(checkpoint)) == (0, before)
    assert lines_of(new, 11) == ["-", '{"logOffset":11}']
    assert lines_of(new, 10) == ["-", '{"logOffset":10}']
    assert not list((new / "sources").glob("0/*"))
    assert (new / "sources/1/11").read_bytes() == (checkpoint / "sources/0/11").read_bytes()
    assert ckpt("preflight", new, "--expect", query).exit_code == 0
    again = ckpt("evolve", new, "--in-place", "--to", query)
    assert (again.exit_code, "NOTHING TO CHANGE" in again.stdout) == (0, True)


def test_what_is_refused_until_it_is_accepted_names_the_command(
    ckpt: Ckpt, copy_of: CopyOf, describe: Describe, tmp_path: Path
) -> None:
    checkpoint, new = copy_of(STATEFUL), tmp_path / "new"
    refused = ckpt("evolve", checkpoint, new, "--to", describe(RATE, like="dedup-changelog-4.3"), "--plan")
    assert (refused.exit_code, new.exists()) == (3, False)
    words = after_next(refused.stdout)
    assert words[-1] == "--accept-from-now-on"
    assert ckpt(*words).exit_code == 0
    assert new.exists()


def test_in_place_from_the_plan_to_the_end_and_back(ckpt: Ckpt, copy_of: CopyOf, describe: Describe) -> None:
    checkpoint = copy_of(FILES)
    before, query = facts(checkpoint), describe(MORE, OLD)

    planned = ckpt("evolve", checkpoint, "--in-place", "--to", query)
    assert (planned.exit_code, facts(checkpoint)) == (1, before)
    done = ckpt(*after_next(planned.stdout), "--grace", 0)
    assert done.exit_code == 0
    assert lines_of(checkpoint, 11) == ["-", '{"logOffset":11}']
    assert ckpt("preflight", checkpoint, "--expect", query).exit_code == 0
    undo = ["evolve", checkpoint, "--undo", next(checkpoint.parent.glob("*ckpt-backup*"))]
    assert ckpt(*undo, "--grace", 0).exit_code == 0
    assert facts(checkpoint) == before


def test_a_change_that_was_interrupted_is_named_and_starts_nothing(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(FILES)
    (checkpoint / "offsets/11").write_bytes(CHANGING)
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert {finding["code"] for finding in document["findings"]} >= {"CKPT114"}
    assert {forecast["outcome"] for forecast in document["restart"]} == {"fails-at-start"}
    assert ckpt("repair", checkpoint).exit_code == 3


def test_what_is_told_as_published(ckpt: Ckpt, copy_of: CopyOf, describe: Describe, tmp_path: Path) -> None:
    query = describe(RATE, like=STATEFUL)
    document = ckpt("evolve", SAMPLES / STATEFUL, tmp_path / "new", "--to", query, "-o", "json").json()
    assert contract.disagreements(document, "evolve") == []
    assert [source["change"] for source in document["sources"]] == ["same"]
    assert (document["verdict"], document["written"]) == ("unknown", False), "there is nothing to change"
    words = ("--to", query, "--from-query", query, "--new-id", "-o", "json")
    again = ckpt("evolve", SAMPLES / STATEFUL, tmp_path / "again", *words).json()
    assert (again["batch"], again["written"]) == (9, True)
    assert again["verdict"] == "unknown", "neither description says what the operator computes"
    plan = ckpt("evolve", copy_of(FILES), "--in-place", "--to", describe(MORE, OLD), "-o", "json").json()
    assert contract.disagreements(plan, "evolve") == []
    assert plan["next"][0]["command"][-1] == "--apply"


@pytest.mark.parametrize(
    ("sample", "sources", "like", "words", "told"),
    [
        ("stateless-killed-3.5", (MORE,), None, (), "its rows of source 0 would never be read"),
        (STATEFUL, (RATE, RATE), STATEFUL, (), "no file says which: map it with --map-source"),
        (STATEFUL, (RATE,), "dedup-changelog-4.3", ("--in-place",), "in place only its sources can"),
        (
            STATEFUL,
            (RATE,),
            None,
            ("--in-place",),
            "the query's state changes (the query has no stateful operator, the checkpoint 0 stateStoreSave)",
        ),
        (
            STATEFUL,
            (RATE,),
            "windowed-aggregation-hdfs-4.2",
            (),
            "the key has window, but no key in the state has it",
        ),
        ("continuous-4.2", (RATE,), None, (), "continuous processing wrote it"),
    ],
)
def test_refused_by_name(
    sample: str,
    sources: tuple[DescribedSource, ...],
    like: str | None,
    words: tuple[str, ...],
    told: str,
    ckpt: Ckpt,
    describe: Describe,
    tmp_path: Path,
) -> None:
    where = () if words else (tmp_path / "new",)
    run = ckpt("evolve", SAMPLES / sample, *where, "--to", describe(*sources, like=like), *words, "-o", "json")
    assert run.exit_code == 3
    assert told in run.json()["refused"]
    assert not (tmp_path / "new").exists()
    assert contract.disagreements(run.json(), "evolve") == []
    assert ("-=0" in str(run.json()["next"])) == told.startswith("the key has")


def test_a_planned_batch_is_planned_again_first(ckpt: Ckpt, describe: Describe, tmp_path: Path) -> None:
    checkpoint = SAMPLES / "stateless-killed-3.5"
    (step,) = ckpt("evolve", checkpoint, tmp_path / "new", "--to", describe(MORE), "-o", "json").json()["next"]

    assert step["command"] == ["ckpt", "rewind", str(checkpoint), "--to-batch", "3", "--replay", "new"]
    assert (step["rows"], step["writes"], step["stop"]) == ("none", False, False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("{new}",), "name the changed query: --to query.json"),
        (("--to", "{query}", "--apply"), "need --in-place"),
        (("{new}", "--in-place", "--to", "{query}"), "name one target: NEW or --in-place"),
        (("--in-place", "--to", "{query}", "--plan"), "--new-id and --plan are for NEW"),
        (("{new}", "--to", "{query}", "--apply"), "need --in-place"),
        (("{new}", "--to", "{query}", "--engine", "spark", "--plan"), "leave it out with --in-place and --plan"),
        (("{new}", "--to", "{query}", "--master", "local"), "--master and --conf need --engine spark"),
        (("--undo", "b", "--jobs", "2"), "--undo restores everything"),
        (("--undo", "b", "--to", "{query}"), "--undo restores everything"),
        (("{new}", "--to", "{query}", "--map-source", "x"), "write it as OLD=NEW"),
        (("{new}", "--to", "{query}", "--map-source", "0=7"), "the query has no source 7"),
        (("{new}", "--to", "{query}", "--map-operator", "0=0"), "write OLD=NEW: the id of an operator"),
        (("{new}", "--to", "{query}", "--start", '0={{"logOffset":1}}'), "the query continues with this source"),
        (("{new}", "--to", "{query}", "--start", '1={{"logOffset":1}}'), "cannot be given a position"),
        (("memory://x", "--to", "{query}"), "disappears when ckpt ends"),
    ],
)
def test_bad_usage_is_one_line(
    words: tuple[str, ...], told: str, ckpt: Ckpt, copy_of: CopyOf, describe: Describe, tmp_path: Path
) -> None:
    named = {"new": tmp_path / "new", "query": describe(OLD, MORE)}
    run = ckpt("evolve", copy_of(FILES), *(word.format(**named) for word in words), "--quiet")
    assert run.exit_code == 2
    assert told in run.refusal()


def test_names_are_given_and_taken_away(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(FILES)
    query = QueryDescription(Spark.V4_2, "update", (replace(OLD, name="alpha"),), (), None, None, {})
    plan, _ = library.evolve(str(checkpoint), str(tmp_path / "named"), to=query)
    assert plan.written
    version, metadata, line = (tmp_path / "named/offsets/11").read_text().split("\n")
    conf = json.loads(metadata)["conf"]
    assert (version, line) == ("v2", 'alpha:{"logOffset":11}')
    assert conf["spark.sql.streaming.queryEvolution.enableSourceEvolution"] == "true"
    assert conf["spark.sql.streaming.offsetLog.formatVersion"] == "2"
    assert (tmp_path / "named/sources/alpha/11").is_file()
    back = QueryDescription(Spark.V4_2, "update", (OLD,), (), None, None, {})
    library.evolve(str(tmp_path / "named"), str(tmp_path / "back"), to=back, new_id=True)
    kept = {path: data for path, (data, *_) in facts(checkpoint).items() if path.startswith("sources/0")}
    assert kept == {path: data for path, (data, *_) in facts(tmp_path / "back").items() if path in kept}
    assert lines_of(tmp_path / "back", 11) == lines_of(checkpoint, 11)


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "1a"])
def test_a_name_leads_nowhere_else(name: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    query = QueryDescription(Spark.V4_2, "update", (DescribedSource("file", name=name),), (), None, None, {})
    query.write(str(tmp_path / "q.json"))
    run = ckpt("evolve", copy_of(FILES), tmp_path / "new", "--to", tmp_path / "q.json")
    assert run.exit_code == 2
    assert "is not a name that Spark accepts for a source" in run.refusal()


def test_every_published_key_is_used(ckpt: Ckpt, copy_of: CopyOf, describe: Describe, tmp_path: Path) -> None:
    query = describe(RATE, like=STATEFUL)
    words = ("--to", query, "--from-query", query, "-o", "json")
    seen = contract.keys_in(ckpt("evolve", SAMPLES / STATEFUL, tmp_path / "new", "--new-id", *words).json())
    seen |= contract.keys_in(
        ckpt("evolve", copy_of(FILES), "--in-place", "--to", describe(OLD, MORE), "-o", "json").json()
    )
    two = describe(RATE, RATE, like=STATEFUL)
    seen |= contract.keys_in(ckpt("evolve", SAMPLES / STATEFUL, "--to", two, "-o", "json").json())
    kept = {
        "warnings[]",
        "index",
        "from",
        "to",
        "kind",
        "sources[]",
        "columns[]",
        "in_sinks[]",  # of a change in place that goes back
        "newer[]",  # of a Spark that is newer than all that ckpt knows
        "rows",
        "says",
    }
    unread = contract.shapes("evolve").keys() - seen
    unseen = {key.rpartition(".")[2] for key in unread if not key.startswith("checkpoint.pipeline.")}
    assert unseen - contract.FORECAST_LISTS - kept - {"before[]", "verdict", "why"} == set()


@pytest.mark.parametrize(
    ("kind", "start", "verdict"),
    [
        ("kafka", {"startingoffsets": "earliest"}, "full"),
        ("kafka", {}, "from-now-on"),
        ("kafka", {"startingoffsets": '{"orders":{"0":5}}'}, "from-now-on"),
        ("delta", {}, "full"),
        ("delta", {"startingtimestamp": "2026-01-01"}, "from-now-on"),
        ("pulsar", {}, "unknown"),
    ],
)
def test_the_options_of_its_reader_say_what_a_new_source_begins_with(
    kind: str, start: dict[str, str], verdict: str, ckpt: Ckpt, describe: Describe, tmp_path: Path
) -> None:
    query = describe(OLD, DescribedSource(kind, start=start, schema={"type": "struct", "fields": []}))
    asked = ckpt("evolve", SAMPLES / FILES, tmp_path / "new", "--to", query, "-o", "json")
    assert [source["verdict"] for source in asked.json()["sources"]] == ["full", verdict]
    refused = verdict == "from-now-on"
    assert (asked.exit_code, (tmp_path / "new").exists()) == (3 * refused, not refused)
    assert ("--accept-from-now-on" in str(asked.json()["refused"])) is refused


@pytest.mark.parametrize(("sample", "verdict"), [(FILES, "full"), (STATEFUL, "impossible")])
def test_rows_of_a_source_that_leaves_stay_in_the_state(
    sample: str, verdict: str, ckpt: Ckpt, describe: Describe, tmp_path: Path
) -> None:
    query = describe(MORE if sample == FILES else OLD, like=sample if sample == STATEFUL else None)
    document = ckpt("evolve", SAMPLES / sample, tmp_path / "new", "--to", query, "--plan", "-o", "json").json()
    assert [(source["change"], source["verdict"]) for source in document["sources"]] == [("replaced", verdict)]


def test_an_operator_that_leaves_has_decided_which_rows_the_others_saw(
    ckpt: Ckpt, describe: Describe, tmp_path: Path
) -> None:
    both = "dedup-aggregation-hdfs-4.2"
    query = describe(RATE, like=both)
    document = json.loads(query.read_text())
    document["operators"] = [each for each in document["operators"] if each["name"] != "dedupe"]
    query.write_text(json.dumps(document))
    changes = ckpt("evolve", SAMPLES / both, tmp_path / "new", "--to", query, "--plan", "-o", "json").json()[
        "operators"
    ]
    assert [(part["name"], part["change"], part["verdict"]) for part in changes] == [
        ("stateStoreSave", "same", "unknown"),
        ("dedupe", "removed", "unknown"),
    ]


COUNT, SUM = DescribedBuffer("count", "long", False, 0), DescribedBuffer("sum", "long", True)

FIRST = ("--map-column", "value_sum=value_sum")


def describe_aggregates(
    path: Path, *buffers: DescribedBuffer, key: Sequence[tuple[str, str]] = (("key", "long"),)
) -> Path:
    """Write ``query.json`` of an aggregation with these columns, each of an aggregate of its own."""
    fields: list[Any] = [
        {"name": each.name, "type": each.type, "nullable": each.nullable, "metadata": {}} for each in buffers
    ]
    family = DescribedFamily("default", struct_of(key), {"type": "struct", "fields": fields})
    functions = tuple(
        DescribedAggregate(each.name.capitalize(), f"{each.name}(v@0)", False, None, None, (each,)) for each in buffers
    )
    operator = DescribedOperator(
        "stateStoreSave",
        (DescribedStore("default", (family,), 0, 2),),
        metadata_version=1,
        keys=tuple(DescribedExpression(f"{name}@0", kind) for name, kind in key),
        aggregates=functions,
        filters=(),
        conditions=(),
    )
    QueryDescription(Spark.V4_2, "update", (RATE,), (operator,), None, None, {}, None, {}).write(str(path))
    return path


def test_columns_have_a_verdict_each_and_new_ones_are_empty(ckpt: Ckpt, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    describe_aggregates(old, COUNT, SUM)
    describe_aggregates(new, DescribedBuffer("max", "long", True), SUM, COUNT)
    words = ("evolve", SAMPLES / STATEFUL, tmp_path / "new", "--to", new, "--from-query", old)

    refused = ckpt(*words)
    assert (refused.exit_code, "--accept-from-now-on accepts that" in refused.stdout) == (3, True)
    document = ckpt(*words, "--accept-from-now-on", "--jobs", 1, "-o", "json").json()
    assert contract.disagreements(document, "evolve") == []
    (operator,) = document["operators"]
    assert (operator["change"], operator["verdict"]) == ("changed", "from-now-on")
    verdicts = {(column["from"], column["to"]): column["verdict"] for column in operator["columns"]}
    assert verdicts == {(0, 0): "full", (None, 0): "from-now-on", (1, 1): "full", (0, 2): "full"}
    before, after = (library.read_state_arrow(str(path)) for path in (SAMPLES / STATEFUL, tmp_path / "new"))
    assert after.column_names == ["key_key", "value_max", "value_sum", "value_count"]
    assert sorted(after.select(before.column_names).to_pylist(), key=str) == sorted(before.to_pylist(), key=str)
    assert after["value_max"].null_count == len(after) > 0
    assert ckpt("preflight", tmp_path / "new", "--expect", new).exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 3, "sum(v) may be value_sum of the state, or a new one"),
        (("--map-column", "value_sum"), 2, "--map-column: write OLD=NEW, with state columns"),
        (
            (*FIRST, "--map-column", "value_sum=value_x"),
            2,
            "--map-column: no operator that keeps its state can use column value_x",
        ),
        ((*FIRST, "--default", "key_x=1"), 2, "--default: no operator that keeps its state can use column key_x"),
        ((*FIRST, "--map-column", "value_sum=value_sum_2"), 3, "two aggregates would take the same column"),
    ],
)
def test_columns_that_no_file_tells_apart(
    words: tuple[str, ...], code: int, told: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    query = describe_aggregates(tmp_path / "query.json", COUNT, SUM, replace(SUM, empty=None))
    run = ckpt("evolve", SAMPLES / STATEFUL, tmp_path / "new", "--to", query, *words)
    assert run.exit_code == code
    assert told in " ".join((run.stdout + run.stderr).split())


def test_columns_stay_while_a_batch_is_planned(ckpt: Ckpt, tmp_path: Path) -> None:
    old = describe_aggregates(tmp_path / "old.json", COUNT, SUM)
    query = describe_aggregates(tmp_path / "query.json", COUNT)
    checkpoint = SAMPLES / "aggregation-killed-changelog-4.3"
    run = ckpt("evolve", checkpoint, tmp_path / "new", "--to", query, "--from-query", old, "-o", "json")
    assert run.exit_code == 3
    assert "is planned but not committed, and columns of operator 0 change" in run.json()["refused"]


@pytest.mark.parametrize(
    ("sources", "like", "words"),
    [
        ((RATE, RATE), STATEFUL, ()),
        ((RATE,), "windowed-aggregation-hdfs-4.2", ()),
        ((RATE,), "tws-rocksdb-4.2", ("--map-operator", "-=0")),
        ((RATE,), "dedup-changelog-4.3", ()),
        ((RATE,), "dedup-changelog-4.3", ("--in-place",)),
    ],
)
def test_the_command_after_a_refusal_is_refused_for_nothing_else(
    ckpt: Ckpt,
    copy_of: CopyOf,
    describe: Describe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sources: tuple[DescribedSource, ...],
    like: str,
    words: tuple[str, ...],
) -> None:
    """It writes, plans, or says in the same words what is wrong, and never shows a sound checkpoint."""
    monkeypatch.chdir(tmp_path)
    checkpoint, query = copy_of(STATEFUL), describe(*sources, like=like)
    assert query.name == "query.json"
    new = () if "--in-place" in words else (tmp_path / "new",)
    refused = ckpt("evolve", checkpoint, *new, "--to", "query.json", *words)
    assert refused.exit_code == 3
    after = after_next(refused.stdout)
    assert after[0] != "inspect"
    done = ckpt(*after)
    assert done.exit_code in (0, 1) or refused.stdout.split("Next")[0].splitlines()[0] in done.stdout


def test_rows_of_a_new_source_meet_the_watermark_of_the_next_batch(copy_of: CopyOf) -> None:
    """After a single batch only its commit has a watermark: Spark evicts by it, and drops rows of a new source."""
    checkpoint = copy_of("windowed-aggregation-hdfs-4.2")
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_text(re.sub(r'"batchWatermarkMs":\d+', '"batchWatermarkMs":0', newest.read_text()))
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    opened = library.open_checkpoint(str(checkpoint))
    assert (watermark_of(opened), next_watermark_of(opened) > 0) == (0, True)
