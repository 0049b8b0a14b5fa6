"""Plain English: phrases that read like a translation are named with file and line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT

PHRASES = {
    r"\b(?:behind|after) batch \S+ goes on\b|\bgo(?:es)? on (?:behind|where)\b": "continues after, continues from",
    r"\bbehind (?:a |the )?batch\b": "after the batch",
    r"\bwithout a word\b|\bin silence\b": "silently",
    r"\bis whole\b|\bare whole\b|\bwhole again\b": "is complete, is intact",
    r"\bheld (?:against|to)\b": "checked against, compared with",
    r"\bstands? in the way\b|\bwhat stands in\b": "blocks",
    r"\bmend(?:s|ed|ing)?\b": "repair, fix",
    r"\ball the same\b": "anyway",
    r"\bmay not be (?:read|written)\b": "cannot be read, cannot be written",
    r"\bstronger than\b": "overrides",
    r"\banother trouble\b": "other problems",
    r"\bways? out\b": "fix, remedy",
    r"\bhand-over\b|\bhand(?:s|ed)? over\b": "handoff, pass, continue",
    r"\bsummer time\b": "daylight saving time",
    r"\bas (?:it|they) stands?\b": "as is, literally",
    r"\bbegins? again\b|\bbegins? anew\b": "starts over",
    r"\bnobody (?:can tell|can say|knows)\b": "unknown",
    r"\bwhere it lies\b|\blies (?:in|at|beside|behind)\b": "is in, is at",
    r"\bnor may\b": "and it must not",
    r"\bst(?:ood|ands?) still\b|\bfell silent\b": "was stopped, stopped answering",
    r"\bstands? nowhere\b": "is in no other file",
    r"\b(?:may|each) lie\b": "can be",
    r"\blost or doubled\b|\bdoubl(?:es|ing) a row\b": "lost or duplicated",
    r"\bcame or went\b": "appeared or disappeared",
    r"\bputs? out\b": "emits",
    r"\bfor ever\b": "forever",
    r"\bin vain\b": "without an answer",
    r"\bSpark fixes\b": "Spark freezes",
    r"\bpass(?:es|ed)? over it\b": "skips it",
    r"\bnothing tells\b": "cannot be checked, is unknown",
    r"\bcannot be known from here\b": "is unknown",
    r"\bdo first what\b|\bis said of it\b": "first do what is said about it",
    r"\btake (?:the|this) [a-z]+ back\b": "undo",
    r"\bis no (?:text|pattern)\b": "is not",
    r"\bfurther from the cause\b": "also found",
    r"\bmore partitions\b.*\b1\b|\b1 more partitions\b": "count properly",
    r"\bSpark is the judge everywhere\b": "Spark decides",
    r"\bstands? as it stood\b": "is taken back to",
    r"\bcounts? for nothing\b": "is ignored",
    r"\bobeyed to the letter\b|\bobeyed literally\b": "followed exactly",
    r"\b(?:was|is) told nothing\b|\btold nothing\b": "did not answer",
    r"\bwatermark has risen to\b": "the watermark after the batch is",
    r"\band its kin\b": "and similar",
    r"\bnot to be had\b": "not available",
    r"\bleaves behind an? offsets? file\b": "leaves an offset file",
    r"\bhas [a-z, ]{1,40} checked by\b": "runs ... over",
    r"\bdoubled unsaid\b|\bdoubled or lost\b": "lost or duplicated silently",
    r"\bgets? (?:a|an) [a-z]+ more\b|\bgot (?:a|an) [a-z]+ more\b": "is added",
}
ALL = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES), re.IGNORECASE)

PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GENERATED = ("api", "commands", "contract", "errors", "findings")  # their sentences are in the code
RIDDLE = re.compile(
    r"(?:^[-*\d. ]*|[.:] )(?:What|Whatever|Whoever|Those) [^?:]{0,200}\b(?:is|are|was|were|has|needs?)\b[^?]*$"
)


def texts() -> Iterator[tuple[Path, int, str]]:
    """What people read: pages, and every string and docstring of the code, with the line where each begins."""
    for page in [*PAGES, ROOT / "benchmarks" / "README.md", ROOT / "sample_checkpoints" / "README.md"]:
        yield page, 1, page.read_text(encoding="utf-8")
    for folder in ("ckpt", "commands"):
        for book in sorted((ROOT / folder).rglob("*.toml")):
            for line, text in enumerate(book.read_text(encoding="utf-8").splitlines(), 1):
                yield book, line, text
        for module in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield module, node.lineno, node.value


def advice(phrase: str) -> str:
    return next(better for worse, better in PHRASES.items() if re.search(worse, phrase, re.IGNORECASE))


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """Lines within a text, from 0, and the phrase there; a phrase may go over the end of a line."""
    joined = re.sub(r"\s", " ", text)
    for match in ALL.finditer(re.sub(r" +", lambda gap: gap[0][:1] + "\0" * (len(gap[0]) - 1), joined)):
        yield text.count("\n", 0, match.start()), match[0]


@pytest.mark.slow
def test_no_phrase_reads_like_a_translation() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{first + line}: {phrase!r}: write {advice(phrase)!r}"
        for path, first, text in texts()
        for line, phrase in found_in(text)
    ]
    assert found == []


def test_no_sentence_of_a_page_is_a_riddle() -> None:
    """``What Spark does is ...`` names its subject last: a reader has to come back to it."""
    found = []
    for page in [*PAGES[:3], *(page for page in PAGES[3:] if page.stem not in GENERATED)]:
        text = re.sub(
            r"```.*?```", lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"), flags=re.S
        )
        for number, line in enumerate(text.splitlines(), 1):
            if not line.startswith(("#", "|")):
                found += [f"{page.relative_to(ROOT)}:{number}: {riddle[0]}" for riddle in RIDDLE.finditer(line)]
    assert found == []


def test_a_phrase_is_found_with_its_line() -> None:
    assert list(found_in("one\nit goes\non where it stood")) == [(1, "goes on where")]
    assert advice("Summer time") == "daylight saving time"
