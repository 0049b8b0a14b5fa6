"""Write what is generated of the documentation again, from the root of the repository.

``docs/findings.md`` comes from ``ckpt.diagnoses``; in README.md, what stands behind ``$ ckpt ...`` in a console block
is what that command prints.
"""

import re
from importlib.metadata import entry_points
from pathlib import Path

from typer.testing import CliRunner

from ckpt.diagnoses import all_diagnoses
from ckpt.findings import Asked, Diagnosis

PAGE = Path(__file__).parent / "findings.md"
README = Path(__file__).parent.parent / "README.md"
_BLOCK = re.compile(r"```console\n\$ ckpt (?P<words>[^\n]*)\n.*?```", re.S)
HEAD = """# Findings

Written by `make docs` from `ckpt/diagnoses/`; a test compares the two. A code is never reused. Errors stop a restart,
lose data or make state unreadable; warnings deserve a look before the next start; notes never change the exit status.
What only concerns a start that nobody will try (a Spark version older than the one that wrote the checkpoint, or
asynchronous tracking of a stateful query) is a note unless that version or mode was asked for by name.

| code | name | severity |
|---|---|---|
"""


def findings_page() -> str:
    """The page as it should stand."""
    diagnoses = all_diagnoses()
    rows = [f"| [{d.code}](#{d.code.lower()}-{d.name}) | {d.name} | {_severity(d)} |" for d in diagnoses]
    sections = [_section(d) for d in diagnoses]
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def _severity(diagnosis: Diagnosis) -> str:
    if not diagnosis.when_asked:
        return diagnosis.severity
    return ", ".join(f"{diagnosis.severity_for(asked)} (`--progress {asked}`)" for asked in Asked)


def _section(diagnosis: Diagnosis) -> str:
    remedy = _plain(diagnosis.remedy) if diagnosis.remedy else "Nothing has to be done."
    head = f"## {diagnosis.code} {diagnosis.name}\n\n{_severity(diagnosis)}"
    return f"{head}\n\n{_plain(diagnosis.meaning)}\n\n**What to do**: {remedy}\n"


def _plain(text: str) -> str:
    return text.replace("{checkpoint}", "CHECKPOINT").replace("{path}", "the file named").replace("{batch}", "N")


def readme() -> str:
    """README.md with the output of its commands as it is now."""
    (script,) = entry_points(group="console_scripts", name="ckpt")
    app = script.load()

    def filled(block: re.Match[str]) -> str:
        output = CliRunner().invoke(app, block["words"].split()).stdout
        return f"```console\n$ ckpt {block['words']}\n{output.rstrip()}\n```"

    return _BLOCK.sub(filled, README.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(findings_page(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")
