"""The page of ``ckpt inspect -o html``: it says what the document says, needs nothing else, and obeys no checkpoint."""

import re
import shlex
import shutil
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import ckpt
from ckpt import inspect, scan
from ckpt.advice import advise, call, run, words
from ckpt.extras import install_command
from ckpt.inspection.scan.scan import present_worst
from ckpt.webpage import parts
from ckpt.webpage.charts import MOST_BARS
from commands.render.page import plot
from tests.conftest import Ckpt, CopyOf
from tests.inspection import golden
from tests.laws.hostile.test_secrets import HOLD_ONE, SECRET
from tests.support.places import ROOT, SAMPLE_NAMES, SAMPLES, some_quick
from tests.webpage.shapes import SHAPES, of_sample, of_texts, with_batches, with_operators, with_partitions

CHECKPOINTS = [f"sample_checkpoints/{name}" for name in ("async-kafka-4.2", "damaged-missing-sst", "kafka-4.2")]
VOID = {"meta", "rect", "br"}
STRUCTURE = "html head title style body main h1 h2 h3 p dl dt dd div span strong code pre ul li"
INSIDE = "details summary section a"
TABLES = "table caption thead tbody tr th td"
PLOTS = "figure figcaption svg g"
TAGS = VOID | {*STRUCTURE.split(), *INSIDE.split(), *TABLES.split(), *PLOTS.split()}


class Reader(HTMLParser):
    """The tags and texts of a page; every tag is closed where it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += f" {data}"


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("shape", SHAPES)
def test_a_page_is_well_formed_and_needs_nothing_else(shape: str, tmp_path: Path) -> None:
    page = plot(SHAPES[shape](tmp_path))
    reader = read(page)

    assert {tag for tag, _ in reader.seen} <= TAGS
    for tag, attributes in reader.seen:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")], tag
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert len(page.encode()) < 500_000
    assert all(line.isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("sample", some_quick(SAMPLE_NAMES, 3))
def test_a_page_says_what_the_document_says(sample: str, ckpt: Ckpt) -> None:
    document = golden.recorded(sample)
    run = ckpt("inspect", f"sample_checkpoints/{sample}", "-o", "html")
    text = " ".join(read(run.stdout).text.split())

    assert run.exit_code == document["exit_code"]
    assert document["verdict"] in text
    first = run.stdout[: run.stdout.index("<h2>Findings</h2>")]
    steps = [step for step in document["next"][:1] if document["cause"] and step["command"]]
    called = [shlex.join(step["command"]).replace("sample_checkpoints/", f"{SAMPLES}/") for step in steps]
    assert all(f"<pre>{command}</pre>" in first for command in called)
    notes = {rated.finding.diagnosis.code for rated in inspect(f"sample_checkpoints/{sample}").notes}
    for finding in document["findings"]:
        shown = finding["severity"] != "note" or finding["code"] in notes  # the verdict says the other notes
        assert (f"{finding['code']} {finding['name']}" in text) == shown
        assert (" ".join(finding["meaning"].replace("`", "").split()) in text) == shown
    assert all(one["error"] in text for one in document["restart"] if one["error"] and one["outcome"] != "refused")
    for operator in (document["state"] or {"operators": []})["operators"]:
        assert f"Operator {operator['id']}: {operator['name'] or 'name not recorded'}" in text


def test_more_batches_are_read_than_for_a_terminal(ckpt: Ckpt) -> None:
    def told(*words: str) -> str:
        return " ".join(
            read(ckpt("inspect", "sample_checkpoints/async-kafka-4.2", "-o", "html", *words).stdout).text.split()
        )

    assert "11 batches, 0 to 31." in told()
    assert "10 batches, 1 to 31; 1 older batch not shown." in told("--batches", "10")


def test_many_batches_are_binned_and_none_is_lost() -> None:
    found = with_batches(100_000)
    page = plot(found)

    assert len(page.encode()) < 2_000_000
    assert page.count("<tr>") < MOST_BARS + 50
    text = read(page).text
    assert "99,000 batches" in text
    assert "1 uncommitted" in text
    assert "1,000 missing" in text
    amounts = [int(number.replace(",", "")) for number in re.findall(r"<td>([\d,]+)</td><td>", page)]
    assert sum(amounts) == sum(advance.amount or 0 for one in found.batches for advance in one.advanced if advance)


def test_a_slow_batch_and_a_large_partition_are_named() -> None:
    text = " ".join(read(plot(with_batches(100))).text.split())
    assert "The longest is 61 min" not in text
    assert "The longest is 1 h 1 min, at batch 34." in text

    text = " ".join(read(plot(with_partitions(1_000))).text.split())
    assert "The largest is partition 777: 38.1 MiB, 40.0 times the median." in text


def test_each_operator_is_there_and_the_plots_are_limited() -> None:
    page = plot(with_operators(7))
    assert [f"Operator {number}:" in page for number in range(7)] == [True] * 7
    assert page.count("<svg") < 40


@pytest.mark.parametrize("text", HOLD_ONE)
def test_no_secret_is_on_a_page(text: str) -> None:
    found = of_sample("two-sources-3.5")
    todo = advise(run(call("inspect", text, default={"x": text}), words("do {text}", text=text)))
    findings = tuple(
        replace(one, finding=of_texts(one.finding, words("{text}", text=text), todo)) for one in found.findings
    )
    sources = tuple(replace(one, name=text, offset={"x": text}) for one in found.sources)
    page = plot(replace(found, verdict=text, findings=findings, sources=sources))
    assert SECRET[:9] not in page
    assert SECRET[9:] not in page
    assert "***" in page


def test_other_commands_have_a_page_too(ckpt: Ckpt) -> None:
    place = "sample_checkpoints/kafka-4.2"
    for line in (["handoff", place], ["explain", "batch 4 doesn't exist"], ["scan", place], ["state", "count", place]):
        reader = read(ckpt(*line, "-o", "html").stdout)
        assert {tag for tag, _ in reader.seen} <= TAGS
        assert "<" not in reader.text


def test_a_row_of_a_scan_leads_to_the_page_of_its_checkpoint(ckpt: Ckpt) -> None:
    page = ckpt("scan", *CHECKPOINTS, "-o", "html").stdout
    reader = read(page)
    links = [attributes["href"] or "" for tag, attributes in reader.seen if tag == "a"]
    sections = dict(re.findall('<section id="([^"]+)">(.*?)</section>', page, re.DOTALL))

    assert {tag for tag, _ in reader.seen} <= TAGS
    assert [link for link in links if link != "#"] == [f"#{name}" for name in sections]
    rows = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', page)
    assert {path for _, path in rows} == {str(Path(path).absolute()) for path in CHECKPOINTS}
    for name, path in rows:
        assert inspect(path).verdict in sections[name]
        assert f"<dd>{path}</dd>" in sections[name]
    assert '<td class="short error" data-head="">error</td>' in page
    assert '<td class=" error" data-head="next start">fails in batch</td>' in page
    assert '<td class="short good" data-head="next start">resumes</td>' in page
    assert "CKPT303 sst file missing or damaged</td>" in page
    assert not re.search("fails-(at|in)-", page)


def test_a_scan_of_many_has_pages_of_the_worst(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt.inspection.scan.scan._PRESENTED", 2)
    page = ckpt("scan", *CHECKPOINTS, "-o", "html").stdout
    warned, bad, good = (str(Path(path).absolute()) for path in CHECKPOINTS)
    assert re.findall(r'<a href="#[^"]+">([^<]+)</a>', page) == [bad, warned]
    assert "Only the first 2 names have a page; <code>ckpt inspect</code> prints those of the others." in page
    assert f">{good}</td>" in page.partition("<summary>")[2]

    monkeypatch.setattr("ckpt.inspection.scan.scan._PRESENTED_LENGTH", 0)
    assert "<section" not in ckpt("scan", *CHECKPOINTS, "-o", "html").stdout


def test_a_row_says_what_its_page_says_where_the_query_ran_on(copy_of: CopyOf, ckpt: Ckpt) -> None:
    copy = copy_of("stateless-4.2")
    scanned = scan(copy)
    (copy / "commits" / "5").write_text("")
    again, pages = present_worst(scanned, lambda inspection: inspection.verdict)
    assert again.checkpoints[0].severity == "error"
    assert pages == {str(copy): again.checkpoints[0].verdict}
    shutil.rmtree(copy)
    gone, pages = present_worst(scanned, lambda inspection: inspection.verdict)
    assert "does not exist" in str(gone.checkpoints[0].error)
    assert pages == {}


def luminance(colour: str) -> float:
    """Of a colour, as WCAG 2 defines it."""
    full = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_texts_have_enough_contrast() -> None:
    style = Path(parts.__file__).with_name("style.css").read_text()
    both = re.findall(r"--(\w+):light-dark\(#(\w+),#(\w+)\)", style)
    printed = dict(re.findall(r"--(\w+):#(\w+)", style))
    assert len(both) == len(printed) == 10
    for scheme in ({name: light for name, light, _ in both}, {name: dark for name, _, dark in both}, printed):
        for ground in ("paper", "card"):
            for ink in ("ink", "dim", "good", "note", "warning", "error"):
                light, dark = sorted((luminance(scheme[ground]), luminance(scheme[ink])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{ink} on {ground}: {scheme}"


def test_a_missing_package_is_one_line(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    parts._make_environment.cache_clear()
    run = ckpt("inspect", "sample_checkpoints/kafka-4.2", "-o", "html")
    assert (run.exit_code, run.stdout) == (3, "")
    assert run.stderr == f"ckpt: output as HTML needs the package jinja2: {install_command('html')}\n"
    assert of_sample("kafka-4.2")._repr_html_() is None


def test_a_notebook_shows_inspections_plans_and_units() -> None:
    found = of_sample("async-kafka-4.2")
    plan, _ = ckpt.repair_async(found.checkpoint.uri)
    unit = ckpt.state_units(of_sample("aggregation-rocksdb-4.2").checkpoint)[0]
    for value, says in ((found, found.verdict), (plan, "offsets/30"), (unit, "bigint")):
        part = value._repr_html_()
        assert part is not None
        reader = read(part)
        assert says in reader.text
        assert "html" not in {tag for tag, _ in reader.seen}


def test_every_rule_for_what_is_inside_weighs_more_than_those_of_a_notebook() -> None:
    """JupyterLab has rules of two or three classes (``.jp-OutputArea-output dt``), nbconvert floats every ``dt``."""
    style = (ROOT / "ckpt" / "webpage" / "style.css").read_text(encoding="utf-8")
    selectors = [
        selector for rule in re.findall(r"(?:^|[{}])([^{}@]+)\{", style) for selector in re.split(r",(?![^(]*\))", rule)
    ]
    assert len(selectors) > 40
    inside = [selector for selector in selectors if " " in selector.strip() and selector.split()[-1] != ".ckpt"]
    assert {selector.split()[0] for selector in inside} == {":is(.ckpt,#ckpt)"}


def test_a_page_names_its_checkpoint_wherever_it_is_read(ckpt: Ckpt) -> None:
    path = "sample_checkpoints/damaged-missing-sst"
    page = ckpt("inspect", path, "-o", "html").stdout
    assert f"<dd>{Path(path).absolute()}</dd>" in page
    assert f"ckpt repair {Path(path).absolute()}<" in page


def test_lists_are_lists_and_headings_are_short(ckpt: Ckpt) -> None:
    page = ckpt("repair", "sample_checkpoints/damaged-missing-sst", "-o", "html").stdout
    warnings = page.partition("<h2>Warnings</h2>")[2].partition("<h2>")[0]
    assert warnings.count("<li>") >= 3
    assert re.search(r"<dt>rows</dt><dd>\s*<p>rows of finished batches are read again</p>", page)
    assert "<p>run-again, recommended: " in page.partition("<h2>Fix</h2>")[2]
    assert re.search(r"<h2>Next</h2>\s*<p>End the driver. Apply this plan.</p>\s*<pre>ckpt repair ", page)
    assert not re.search("<(p|dt|li)>[-→] ", page)


@pytest.mark.parametrize("sample", ["async-kafka-4.2", "damaged-missing-sst", "stateless-4.2", "continuous-4.2"])
def test_no_heading_has_a_backquote(sample: str) -> None:
    path = f"sample_checkpoints/{sample}"
    values = (inspect(path), scan(path), ckpt.preflight(path), ckpt.repair(path)[0])
    for page in (value._repr_html_() for value in values):
        assert page is not None
        headings = re.findall(r"<h[123]>.*?</h[123]>|<p class=.verdict.*?</p>", page, re.DOTALL)
        assert len(headings) >= 2
        assert [heading for heading in headings if "`" in heading] == []
