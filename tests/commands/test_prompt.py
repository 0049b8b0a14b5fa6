"""Values at a Python prompt: short, a page, and HTML, in the words of the library; each call on a page can be made."""

import ast
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt import types
from ckpt.advice import Call, Hole, call, plain
from ckpt.changes.apply import ApplyOptions, ChangeResult
from ckpt.inspection.explain.catalog import catalog
from ckpt.state.export.request import ExportOptions
from ckpt.state.reading.choose import Part
from ckpt.values import Value
from commands import prompt
from commands.prompt import as_call
from commands.render.reports import find_report
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import ROOT, SAMPLE_NAMES, SAMPLES, some_quick

ASYNC, KAFKA, HDFS, ROCKSDB = (
    str(SAMPLES / name) for name in ("async-kafka-4.2", "kafka-4.2", "aggregation-hdfs-4.2", "aggregation-rocksdb-4.2")
)
VALUES: dict[str, Callable[[], Any]] = {
    "open_checkpoint": lambda: ckpt.open_checkpoint(ASYNC),
    "inspect": lambda: ckpt.inspect(ASYNC),
    "scan": lambda: ckpt.scan(KAFKA),
    "explain": lambda: ckpt.explain("java.lang.IllegalStateException: batch 4 doesn't exist"),
    "state_verify": lambda: ckpt.state_verify(HDFS),
    "state_units": lambda: ckpt.state_units(HDFS)[0],
    "state_show": lambda: ckpt.state_show(HDFS, limit=3),
    "state_count": lambda: ckpt.state_count(HDFS),
    "state_diff": lambda: ckpt.state_diff(HDFS, from_batch=3),
    "state_history": lambda: ckpt.state_show(HDFS, key={"key": "3"}).history(limit=3),
    "state_keys": lambda: ckpt.state_keys(HDFS),
    "export_state": lambda: ckpt.export_state(HDFS, plan=True),
    "offsets_commit": lambda: types.OffsetsCommit(
        ckpt.scan(KAFKA), (types.CommittedGroup(KAFKA, "lag-kafka-4.2", {"orders": {"0": 51}}, None),)
    ),
    "repair": lambda: ckpt.repair(ASYNC),
    "repair_async": lambda: ckpt.repair_async(ASYNC),
    "rewind": lambda: ckpt.rewind(KAFKA, to_batch=3),
    "skip": lambda: ckpt.skip(SAMPLES / "aggregation-killed-hdfs-4.0"),
    "relocate": lambda: ckpt.relocate(SAMPLES / "tws-rocksdb-4.2", to="s3a://bucket/moved"),
    "prune": lambda: ckpt.prune(HDFS),
    "offsets_show": lambda: ckpt.offsets_show(KAFKA),
    "offsets_set": lambda: ckpt.offsets_set(KAFKA, shift=["orders/0=-10"]),
    "offsets_export": lambda: ckpt.offsets_export(KAFKA),
    "offsets_import": lambda: ckpt.offsets_import(KAFKA, ckpt.offsets_export(KAFKA).document),
    "copy": lambda: ckpt.copy(HDFS, "memory://prompt/copy"),
    "evolve": lambda: ckpt.evolve(HDFS, "memory://prompt/evolve", to=str(ROOT / "docs" / "query.json"), plan=True),
    "rewrite": lambda: ckpt.rewrite(HDFS, "memory://prompt/rewrite", partitions=3, plan=True),
    "write_state": lambda: ckpt.write_state(
        {"operator 0": ckpt.read_state_arrow(HDFS)}, "memory://prompt/write", like=HDFS
    ),
    "handoff": lambda: ckpt.handoff(KAFKA),
    "migrate_changelog": lambda: ckpt.migrate_changelog(ROCKSDB, to="on"),
    "migrate_provider": lambda: ckpt.migrate_provider(HDFS, to="rocksdb"),
    "migrate_transform_with_state": lambda: ckpt.migrate_transform_with_state(ROCKSDB, to="new-query", plan=True),
    "query": lambda: ckpt.types.QueryDescription.read(str(ROOT / "docs" / "query.json")),
    "rehearse": lambda: make_rehearsal("<script>alert(1)</script> & co"),
}


def make_rehearsal(text: str) -> types.Rehearsal:
    """Return what a rehearsal is of a query that fails with this text in its second batch, beside the old one."""
    end, batch = types.RehearsalEnd, types.RehearsedBatch(4, 10, None, 120)
    state = ckpt.state_diff(HDFS, from_batch=3).units
    new = types.RehearsedQuery(
        end.FAILED, (batch,), True, None, (plain(f"operator 0 (from-now-on): {text}"),), text, ckpt.explain(text), state
    )
    old = types.RehearsedQuery(end.ENOUGH, (batch, batch), state_unknown=text)
    return types.Rehearsal(HDFS, "4.2.0", new, old)


OPTIONS = ApplyOptions.__annotations__.keys() | Part.__annotations__.keys() | ExportOptions.__annotations__.keys()
CALL = re.compile(r"ckpt\.[a-z_]+\([^`\n]*\)")


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_short_and_prints_as_a_page(name: str) -> None:
    value = VALUES[name]()

    assert "\n" not in repr(value)
    assert len(repr(value)) < 300
    page = str(value)
    assert len(page.splitlines()) > 1
    assert "\x1b" not in page
    words = re.sub(r"(?m)^ *!ckpt .*$", "", page)  # what has no call of the library is marked as a line of a shell
    assert not re.search(r"(?<![\w-])--[a-z]|\bckpt (?:inspect|repair|rewind|state|offsets|rewrite)\b|-o json", words)
    for shown in CALL.findall(page):
        binds(shown)
    html = value._repr_html_()
    assert html.startswith("<style>")
    assert "-o json" not in html
    assert "<script>alert" not in html
    assert ("&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in html) is (name == "rehearse")
    assert not re.search(r"ckpt (?:inspect|repair|rewind|state|offsets|rewrite)\b", html)


def binds(call: str) -> None:
    """Raise where a call is none, or not of this library."""
    expression = ast.parse(call, mode="eval").body
    assert isinstance(expression, ast.Call)
    places = [ast.literal_eval(argument) for argument in expression.args]
    named = {
        str(keyword.arg): keyword.value.id if isinstance(keyword.value, ast.Name) else ast.literal_eval(keyword.value)
        for keyword in expression.keywords  # a name is a number that is left to the reader
    }
    signature = inspect.signature(getattr(ckpt, ast.unparse(expression.func).removeprefix("ckpt.")))
    signature.bind(*places, **named)
    assert named.keys() <= signature.parameters.keys() | OPTIONS


@pytest.mark.parametrize("sample", some_quick(SAMPLE_NAMES, 6))
def test_every_call_on_the_page_of_a_sample_can_be_made(sample: str) -> None:
    for value in (ckpt.inspect(SAMPLES / sample), ckpt.repair(SAMPLES / sample)):
        page = str(value)
        assert not re.search(r"`ckpt [a-z]", page)
        for shown in CALL.findall(page):
            binds(shown)


def test_every_call_that_an_error_names_can_be_made() -> None:
    for error in catalog():
        for shown in CALL.findall(str(ckpt.explain(error.sample))):
            binds(shown)


RENAMED = json.loads(json.dumps(ckpt.offsets_export(KAFKA).document).replace('"orders": {"0": 51', '"o\'1": {"0": 55'))
TWS, ID = str(SAMPLES / "tws-rocksdb-4.2"), "0eca941f-ed93-4839-b667-425c72e63635"


@pytest.mark.parametrize(
    ("plan", "arguments"),
    [
        (lambda: ckpt.repair(ASYNC), ""),
        (lambda: ckpt.repair(ASYNC, choose="read-again", leftovers=True),
         'choose="read-again", leftovers=True, accept_replay=True, '),
        (lambda: ckpt.relocate(TWS), ""),
        (lambda: ckpt.relocate(TWS, to="s3a://bucket/my cp"), 'to="s3a://bucket/my cp", '),
        (lambda: ckpt.rewind(KAFKA, to_batch=3), "to_batch=3, accept_skip=True, accept_replay=True, "),
        (lambda: ckpt.repair_async(ASYNC, strategy="rewind"), 'strategy="rewind", accept_replay=True, '),
        (lambda: ckpt.offsets_set(KAFKA, shift=["orders/0=-10"]),
         'shift=["orders/0=-10"], expect_batch=5, accept_replay=True, '),
    ],
)  # fmt: skip
def test_the_page_of_a_plan_ends_with_the_call_that_applies_it(plan: Callable[[], Any], arguments: str) -> None:
    result = plan()
    call = str(result).splitlines()[-1].strip()
    path = result.plan.inspection.checkpoint.uri
    assert call == f'ckpt.{re.sub("[- ]", "_", result.plan.command)}("{path}", {arguments}apply=True)'
    binds(call)


def test_the_call_of_a_plan_carries_it_out(copy_of: CopyOf) -> None:
    lost = copy_of("kafka-4.2", to="lost")
    for name in ("metadata", ".metadata.crc"):  # which proves the id that it had
        (lost / name).unlink(missing_ok=True)
    plans = (
        ckpt.repair(lost, query_id=ID),
        ckpt.relocate(copy_of("tws-rocksdb-4.2", to="moved"), to="s3a://bucket/moved"),
        ckpt.offsets_set(copy_of("kafka-4.2", to="set"), source=0, to={"orders": {"0": 51, "1": 52}}),
        ckpt.offsets_import(copy_of("kafka-4.2", to="import"), RENAMED, topic={"o'1": "orders"}),
    )
    for plan, _ in plans:
        call = str(plan).splitlines()[-1].strip()
        done = eval(call.replace("apply=True", "apply=True, grace=0"), {"ckpt": ckpt})
        assert done.receipt.applied, call
        assert done.plan.steps == plan.steps


CALLS = {
    call("state_count", "cp", key={"user": "ann", "n": 1}): 'ckpt.state_count("cp", key={"user": "ann", "n": 1})',
    call("export_state", "cp", plan=True, side="left"): 'ckpt.export_state("cp", plan=True, side="left")',
    call("inspect", "cp", spark="4.2", progress="sync"): 'ckpt.inspect("cp", spark="4.2", progress="sync")',
    call("offsets_set", "cp", shift=("t/0=-1", "t/1=-2")): 'ckpt.offsets_set("cp", shift=["t/0=-1", "t/1=-2"])',
    call("state_verify", "my cp"): 'ckpt.state_verify("my cp")',
    call("rewind", "cp", to_batch=Hole.N, sink=Hole.URI): 'ckpt.rewind("cp", to_batch=N, sink="URI")',
    call("rewind", "cp", to_batch=3, grace=0, apply=True): 'ckpt.rewind("cp", to_batch=3, grace=0, apply=True)',
    call("rewind", "cp", to_sink_version=3, sink="t", restore_sink=True, replay="new"): (
        'ckpt.rewind("cp", to_sink_version=3, sink="t", restore_sink=True, replay="new")'
    ),
    call("inspect", "cp", sources=True, source_options={0: {"path": "/in"}}): (
        'ckpt.inspect("cp", sources=True, source_options={0: {"path": "/in"}})'
    ),
    call("inspect"): "ckpt.inspect",
    call("preflight", "cp", sources=True): 'ckpt.preflight("cp", sources=True)',
    call("import_state", "out", "new", like="old"): 'ckpt.import_state("out", "new", like="old")',
    call("evolve", "cp", "new", to="query.json"): 'ckpt.evolve("cp", "new", to="query.json")',
    call("handoff", "cp", snippet="python"): 'ckpt.handoff("cp", snippet="python")',
}


@pytest.mark.parametrize(("advised", "line"), CALLS.items(), ids=lambda value: str(value)[:40])
def test_a_call_is_a_line_of_python_or_of_a_shell(advised: Call, line: str) -> None:
    assert as_call(advised) == line
    if line.startswith("ckpt.") and "(" in line:
        binds(line)


def test_a_value_without_pages_prints_its_short_form(monkeypatch: pytest.MonkeyPatch) -> None:
    value = ckpt.open_checkpoint(KAFKA)
    monkeypatch.setattr(Value, "renderers", lambda: None)

    assert str(value) == repr(value)
    assert repr(value).startswith("Checkpoint(uri='")
    assert value._repr_html_() is None


def test_a_secret_is_in_none_of_its_forms(tmp_path: Path) -> None:
    receipt = ckpt.types.Receipt(backup="s3://key:secret@bucket/backup", applied=True)

    assert "secret" not in f"{receipt!r} {receipt} {receipt._repr_html_()}"


def test_whatever_a_call_returns_prints_as_a_page() -> None:
    """A class that is forgotten would raise where somebody prints a value of it."""
    values = [
        value for name in dir(types) if isinstance(value := getattr(types, name), type) and issubclass(value, Value)
    ]
    prompt.text(types.Receipt())  # which imports all reports
    assert len(values) > 20
    assert [
        kind for kind in values if kind.__name__ not in ("ChangePlan", "Checkpoint") and not find_report(kind)
    ] == []


PRINTED = {
    "open_checkpoint": f"inspect {ASYNC}",
    "inspect": f"inspect {ASYNC}",
    "scan": f"scan {KAFKA}",
    "state_verify": f"state verify {HDFS}",
    "state_show": f"state show {HDFS} --limit 3",
    "state_count": f"state count {HDFS}",
    "state_diff": f"state diff {HDFS} --from-batch 3",
    "state_history": f"state history {HDFS} --key key=3 --limit 3",
    "state_keys": f"state keys {HDFS}",
    "export_state": f"export-state {HDFS} --plan",
    "repair": f"repair {ASYNC}",
    "repair_async": f"repair-async {ASYNC}",
    "rewind": f"rewind {KAFKA} --to-batch 3",
    "skip": f"skip {SAMPLES / 'aggregation-killed-hdfs-4.0'}",
    "relocate": f"relocate {SAMPLES / 'tws-rocksdb-4.2'} --to s3a://bucket/moved",
    "prune": f"prune {HDFS}",
    "offsets_show": f"offsets show {KAFKA}",
    "offsets_set": f"offsets set {KAFKA} --shift orders/0=-10",
    "handoff": f"handoff {KAFKA}",
    "migrate_changelog": f"migrate changelog {ROCKSDB} --to on",
    "migrate_provider": f"migrate provider {HDFS} --to rocksdb",
    "migrate_real_time": f"migrate real-time {KAFKA}",
    "migrate_transform_with_state": f"migrate transform-with-state {ROCKSDB} --to new-query --plan",
    "preflight": f"preflight {KAFKA}",
    "sql": f"sql SUMMARIZE|FROM|batches {KAFKA}",
    "copy": f"copy {HDFS} new --plan",
    "rewrite": f"rewrite {HDFS} new --partitions 3 --plan",
    "split": f"split {HDFS} new newer --where key_key=1 --where key_key=2 --accept-loss --plan",
    "evolve": f"evolve {HDFS} new --to {ROOT / 'docs' / 'query.json'} --plan",
}
"""The command that prints what a call of ``VALUES``, or of ``PLANNED``, returns; ``|`` stands for a space in a word."""
PLANNED: dict[str, Callable[[], Any]] = {
    "migrate_real_time": lambda: ckpt.migrate_real_time(KAFKA),
    "preflight": lambda: ckpt.preflight(KAFKA),
    "sql": lambda: ckpt.sql("SUMMARIZE FROM batches", KAFKA),
    "copy": lambda: ckpt.copy(HDFS, "new", plan=True),
    "rewrite": lambda: ckpt.rewrite(HDFS, "new", partitions=3, plan=True),
    "split": lambda: ckpt.split(HDFS, ["new", "newer"], where=["key_key=1", "key_key=2"], accept_loss=True, plan=True),
    "evolve": lambda: ckpt.evolve(HDFS, "new", to=str(ROOT / "docs" / "query.json"), plan=True),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_document_of_a_value_is_what_its_command_prints(name: str, ckpt: Ckpt) -> None:
    value: Any = (VALUES | PLANNED)[name]()
    printed = ckpt(*(word.replace("|", " ") for word in PRINTED[name].split()), "-o", "json").stdout
    texts = json.dumps(value.to_dict(), indent=2), printed.rstrip()

    made, expected = (_OF_ONE_RUN.sub("", text) if name in ("scan", "split") else text for text in texts)
    assert made == expected
    if isinstance(value, ChangeResult):
        assert value.plan.to_dict() == value.to_dict()


_OF_ONE_RUN = re.compile(r'"(began|ended|age)_ms": \d+|"query_id": "[0-9a-f-]{36}"')


def test_a_part_of_a_document_is_a_value_too() -> None:
    inspection = ckpt.inspect(SAMPLES / "damaged-missing-sst")
    document: dict[str, Any] = inspection.to_dict()
    codes = [finding.to_dict()["code"] for finding in inspection.findings]

    assert codes == [finding["code"] for finding in document["findings"]]
    assert [forecast.to_dict() for forecast in inspection.forecasts] == document["restart"]
    assert types.Receipt(backup="s3://key:secret@bucket/b").to_dict()["backup"] == "s3://***@bucket/b"
    assert VALUES["state_units"]().to_dict()["operator"] == 0
    assert VALUES["query"]().to_dict()["spark"]


def test_every_command_with_a_document_is_compared() -> None:
    others = {"explain", "import-state", "offsets commit", "merge", "offsets export", "offsets import", "offsets move"}
    compared = {words.partition(" /")[0].partition(" SUMMARIZE")[0] for words in PRINTED.values()}
    assert {*contract.commands()} - others == compared
