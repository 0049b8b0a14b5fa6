"""``docs/findings.md``, from the declarations of the diagnoses."""

import re
from functools import cache

from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Asked, Diagnosis

from .places import DOCS

HEAD = """# Findings

Written by `make docs` from `ckpt/restart/diagnoses/`; a test compares the two. A code is never reused.
Errors stop a restart, lose data or make state unreadable; warnings deserve a look before the next start; notes never
change the exit status.
What only concerns a start that nobody will try (a Spark version older than the one that wrote the checkpoint, or
asynchronous tracking of a stateful query) is a note unless that version or mode was asked for by name.

| code | name | severity |
|---|---|---|
"""


@speaking(SHELL)
def findings_page() -> str:
    """``docs/findings.md`` as it should read."""
    diagnoses = all_diagnoses()
    rows = [f"| [{d.code}](#{d.code.lower()}-{d.name}) | {d.name} | {_severity(d)} |" for d in diagnoses]
    sections = [_section(d) for d in diagnoses]
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def _severity(diagnosis: Diagnosis) -> str:
    if not diagnosis.when_asked:
        return diagnosis.severity
    return ", ".join(f"{diagnosis.severity_for(asked)} (`--progress {asked}`)" for asked in Asked)


def _section(diagnosis: Diagnosis) -> str:
    meaning, remedy = str(diagnosis.meaning), str(diagnosis.advice or "Nothing needs to be done.")
    head = f"## {diagnosis.code} {diagnosis.name}\n\n{_severity(diagnosis)}"
    seen = ", ".join(f"[{title}](incidents.md#{anchor})" for title, anchor in _incidents().get(diagnosis.code, ()))
    seen = f"\n**Incidents**: {seen}\n" if seen else ""
    return f"{head}\n\n{in_lines(meaning)}\n\n**What to do**: {in_lines(remedy)}\n{seen}"


@cache
def _incidents() -> dict[str, list[tuple[str, str]]]:
    """The groups of docs/incidents.md that name a code: their titles and anchors."""
    found = dict[str, list[tuple[str, str]]]()
    for group in re.split(r"^## ", (DOCS / "incidents.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = group.partition("\n")
        anchor = re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")
        for code in sorted({*re.findall(r"\[(CKPT\d{3})\]\(", body)}):
            found.setdefault(code, []).append((title, anchor))
    return found


def in_lines(text: str) -> str:
    """One sentence per line, so that a diff shows which one has changed."""
    return re.sub(r"(?<=[a-z0-9`)\]][.!?]) (?=[A-Z`])", "\n", text)
