"""One way to report: one place prints, every form of output is every command's, and no page obeys a checkpoint."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest
import typer

from ckpt.advice import Code, Do, Instruction, Name, Option, Setting, Step, Words, advise, call, plain, run, words
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.restart.findings import Severity
from commands.render import blocks
from commands.render.blocks import Block, Page, TooWide
from commands.render.layout import PageLayout
from commands.render.reports import Report
from commands.report import Output, emit
from tests.conftest import Ckpt
from tests.laws.hostile.test_secrets import HOLD_ONE, SECRET
from tests.support.places import ROOT

REPORT = ROOT / "commands" / "report.py"


@pytest.mark.slow
def test_a_new_form_of_output_fails_type_checking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the one place that prints knows how to lay out a page in it; then every report has it."""
    monkeypatch.chdir(ROOT)
    known = '    JSON = "json"\n'
    shadow = tmp_path / "report.py"
    shadow.write_text(REPORT.read_text().replace(known, known + '    CLAY = "clay"\n'))
    words = ["-m", "mypy", "--shadow-file", "commands/report.py", str(shadow), "commands/report.py"]
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True)  # it raises the recursion limit

    assert run.returncode == 1
    assert "incompatible type" in run.stdout
    assert "Output.CLAY" in run.stdout


def printing(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.echo", "print"):
            if not any(keyword.arg == "err" for keyword in node.keywords):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout.write", "typer.secho"):
            yield ast.unparse(node)


def test_one_place_prints_to_standard_output() -> None:
    found = {module.name: [*printing(module)] for module in (ROOT / "commands").rglob("*.py")}

    assert {name: calls for name, calls in found.items() if calls} == {
        "report.py": ["typer.echo(text)"],
        "main.py": ["typer.echo(text)"],
    }


HOSTILE = "a\x1b[2Jb\x07\nc\u202e"


def every_part(text: str) -> list[Words]:
    """A text with a part of each kind; whatever a checkpoint may say in it is this text."""
    return [
        words("say {text}", text=text),
        words("run {call}", call=call("inspect", text)),
        words("run {call}", call=call("state_show", "x", store=text, key=(text,), default={"0": {"a": text}})),
        words("see {code}", code=Code(text)),
        words("see {name}", name=Name(text)),
        words("set {setting}", setting=Setting(text)),
        words("give {option}", option=Option("to", text)),
    ]


def every_step(text: str) -> list[Step]:
    """Steps in which whatever a checkpoint may say is this text."""
    told = words("do {text}", text=text)
    return [
        run(call("inspect", text), told, before=[told]).or_(run(call("handoff", "x", sink=text), told)),
        Step(Instruction(Do.START, (text,), plain(text)), told),
    ]


def every_block(text: str) -> list[Block]:
    """A block of each kind; whatever a checkpoint may say in it is this text."""
    return [
        blocks.Title(text, (text,)),
        blocks.Headline(text, blocks.Tone.GOOD),
        blocks.Heading("Name", text),
        blocks.Item(text, 4, text),
        *map(blocks.Item, every_part(text)),
        blocks.Line(text),
        blocks.Command(text),
        blocks.Command(Code(text)),
        blocks.Command(call("inspect", text, default={"a": text})),
        *(blocks.Next((step,)) for step in every_step(text)),
        *blocks.show_advice(advise(*every_step(text)), 4, "do"),
        blocks.CodeBlock(text),
        *(blocks.Table(((text,) * 4,), (text,) * 4, wide) for wide in TooWide),
        blocks.Table(((blocks.Cell(text, text, blocks.Tone.ERROR, text),),)),
        blocks.Cases(((text, text),)),
        blocks.FindingHead(Severity.ERROR, text, text),
    ]


def test_there_is_a_block_of_each_kind() -> None:
    assert {type(block) for block in every_block("")} == set(get_args(Block))


@pytest.mark.parametrize(
    "block",
    [block for block in every_block(HOSTILE) if not isinstance(block, blocks.CodeBlock)],  # a file, shown as it is
    ids=lambda block: type(block).__name__,
)
@pytest.mark.parametrize("width", [20, 80])
@speaking(SHELL)
def test_text_of_a_page_is_escaped(block: Block, width: int) -> None:
    text = PageLayout(width).text(((block,),))

    assert "b\\x07" in text or "b\\007" in text or text == ""  # as a word of a shell
    assert all(line.isprintable() for line in text.splitlines())


class Shown(Report[Sequence[Block]]):
    """A report of some blocks."""

    def page(self) -> Page:
        return (tuple(self.record),)

    def document(self) -> dict[str, object]:
        return {}


@pytest.mark.parametrize("text", HOLD_ONE)
@pytest.mark.parametrize("output", [output for output in Output if output is not Output.JSON])
def test_every_text_of_a_page_is_masked(output: Output, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for padding in range(0, 80, 8):
        for block in every_block("x" * padding + f" {text}"):
            with pytest.raises(typer.Exit):
                emit(Shown([block]), output)
            shown = capsys.readouterr().out
            assert SECRET[:9] not in shown, block
            assert SECRET[9:] not in shown, block
            assert "***" in shown.replace("\\", "")  # Markdown escapes it


def test_a_command_with_a_masked_secret_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    inspect = call("inspect", f"s3://bucket/x?secret_key={SECRET}", default={"0.secret_key": SECRET})
    advice = blocks.Item(words("{stop}then run {inspect}.", stop="Stop the query, " * 4, inspect=inspect))
    with pytest.raises(typer.Exit):
        emit(Shown([advice]), Output.TABLE)
    assert "\n  ckpt inspect 's3://bucket/x?secret_key=***' --default '0.secret_key=***'\n" in capsys.readouterr().out


def test_what_comes_next_has_a_heading_in_a_browser(ckpt: Ckpt) -> None:
    page = ckpt("rewind", "sample_checkpoints/aggregation-hdfs-4.2", "--to-batch", 7, "-o", "html").stdout
    assert page.count("<h2>Next</h2>") == 1
    assert page.index("<h2>Next</h2>") > page.index("<h2>Warnings</h2>")
