"""``docs/errors.md``, from the catalog of errors."""

from ckpt.advice.spelling import quote_line
from ckpt.inspection.explain.catalog import KnownError, catalog
from ckpt.restart.diagnoses import all_diagnoses
from tests.inspection.explain.classes import versions_of

from .findings import in_lines

HEAD = """# Errors

Written by `make docs` from `ckpt/inspection/explain/catalog.toml`; a test compares the two.
`ckpt explain` finds these in a message or in a whole driver log ([how](explain.md)).
The error classes come from the lists of Spark 3.5 to 4.3, of its Kafka connector and of Delta.

| says | means | findings |
|---|---|---|
"""


_MOVED = "Runbooks: [a moved checkpoint](runbooks/relocate.md), [a move to another storage or cloud](runbooks/move.md)."


def errors_page() -> str:
    """``docs/errors.md`` as it should read."""
    names = {one.code: one.name for one in all_diagnoses()}
    rows = [f"| `{_says(one)}` | [{one.title}](#{_anchor(one)}) | {_codes(one, names)} |" for one in catalog()]
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(_error(one, names) for one in catalog())


def _anchor(error: KnownError) -> str:
    return error.id.replace(".", "")


def _says(error: KnownError) -> str:
    text = error.says[0] if error.says else error.classes[0]
    return (
        text.replace("{n}", "N")
        .replace("{}", "...")
        .replace("{names}", "...")
        .replace("{end}", "")
        .replace("|", "\\|")
        .strip()
    )


def _codes(error: KnownError, names: dict[str, str]) -> str:
    return ", ".join(f"[{code}](findings.md#{code.lower()}-{names[code]})" for code in error.codes)


def _error(error: KnownError, names: dict[str, str]) -> str:
    classes = [f"`{name}` ({_span(versions_of(name))})" for name in error.classes]
    facts = [
        f"Reported by: {error.system} ({'Spark ' if error.since[0].isdigit() else ''}{error.since}).",
        *([f"Error class: {', '.join(classes)}."] if classes else []),
        *([f"Findings: {_codes(error, names)}."] if error.codes else []),
        *([_MOVED] if "CKPT305" in error.codes else []),
        *([f"Command: `{quote_line(error.command)}`."] if error.command else []),
        f"Source: {error.source}.",
    ]
    says = f"```text\n{error.sample}\n```"
    head = f"## {error.id}\n\n**{error.title}**\n\n{says}"
    cause, cure = in_lines(str(error.cause)), in_lines(str(error.cure))
    shown = "\n".join(facts)
    return f"{head}\n\n{cause}\n\n**What to do**: {cure}\n\n{shown}\n"


def _span(versions: tuple[str, ...]) -> str:
    first, last = versions[0], versions[-1]
    return first if first == last else f"{first} to {last}"
