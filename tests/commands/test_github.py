"""``-o github``: no text of a page is a workflow command or markup, and the summary goes where GitHub says."""

import html
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from ckpt.advice import Code, Do, call, do, run, words
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.restart.findings import Severity
from ckpt.texts import quote_word
from commands.render import blocks
from commands.render.blocks import Block, Headline, Item, Tone
from commands.render.github import annotate, markdown
from tests.commands.test_report import every_block
from tests.conftest import Ckpt
from tests.support.places import SAMPLES

NASTY = "1. <script>x</script> [a](b) ![c](d) **e** _f_ ~~g~~ `h` # | &lt; https://i.example @j \\k :l: $m$ ::n:: - o"
TAGS = {"h2", "h3", "p", "blockquote", "ul", "li", "pre", "code", "strong", "table", "thead", "tbody", "tr", "th", "td"}
_LEFT_OUT = re.compile(r"[`\s]")  # a command may be folded, and loses the backquotes around it
BROKEN = "SAMPLE/offsets: 50%\n::error::x\r::add-mask::y"


@pytest.mark.parametrize("block", every_block(NASTY), ids=lambda block: type(block).__name__)
@speaking(SHELL)
def test_no_text_is_markup(block: Block) -> None:
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown(((block,),)))

    assert set(re.findall(r"<(\w+)", rendered)) <= TAGS
    shown = html.unescape(re.sub(r"</?\w+[^>]*>", "", rendered))
    assert any(_LEFT_OUT.sub("", form) in _LEFT_OUT.sub("", shown) for form in (NASTY, quote_word(NASTY)))


def test_code_ends_where_it_ends() -> None:
    assert markdown(((blocks.CodeBlock("a\n````\nb"),),)) == "`````\na\n````\nb\n`````"
    assert markdown(((Item(words("x {code} y", code=Code("`a``b"))),),)) == "x ``` `a``b ``` y"


def test_an_annotation_has_the_commands_of_a_finding() -> None:
    below = (Item(words("Stop.")), blocks.Command(call("repair", "/cp")), Item("Then"), blocks.Heading("no more"))
    page = ((blocks.FindingHead(Severity.ERROR, "CKPT1"), *below, Item("of others")),)

    assert annotate(page) == "::error title=CKPT1::Stop.%0Ackpt repair /cp%0AThen"


def test_what_comes_next_has_its_place() -> None:
    step = run(call("repair", "/cp"), words("See the fixes."))
    steps = (step.or_(do(Do.WAIT, words("Wait."))), do(Do.START, words("Start.")))
    page = markdown(((blocks.Next(steps),),))

    assert page == ("### Next\n\nSee the fixes\\.\n\n```\nckpt repair /cp\n```\n\n**Or** Wait\\.\n\n**Then** Start\\.")


def test_a_line_of_an_annotation_is_one_command() -> None:
    page = (
        (Headline(BROKEN, Tone.ERROR),),
        (blocks.FindingHead(Severity.WARNING, f"{BROKEN},a:b", BROKEN), Item(BROKEN), Item(BROKEN)),
        (blocks.FindingHead(Severity.NOTE, "left out"), blocks.Next((), "no annotation")),
    )
    lines = annotate(page).split("\n")
    text = "SAMPLE/offsets: 50%25\\n::error::x\\r::add-mask::y"

    assert len(lines) == 2
    assert lines[0] == f"::error title=ckpt::{text}"
    title = text.replace(":", "%3A") + "%2Ca%3Ab"
    assert lines[1] == f"::warning title={title}::{text}%0A{text}%0A{text}"


def test_the_summary_is_appended(ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SAMPLES / "aggregation-hdfs-4.2"
    together = ckpt("preflight", sample, "-o", "github").stdout
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    summary.write_text("before\n\n")
    runs = [ckpt("preflight", sample, "-o", "github") for _ in range(2)]

    assert [run.stdout for run in runs] == [
        "::notice title=aggregation-hdfs-4.2::START: Restarts with new batch 10\n"
    ] * 2
    assert f"{runs[0].stdout}\n{summary.read_text().split('before')[1].strip()}\n".count("## ") >= 2
    page = together.partition("\n\n")[2].strip()
    assert summary.read_text() == f"before\n\n{page}\n\n{page}\n\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "folder"))
    assert ckpt("preflight", sample, "-o", "github").exit_code == 3
