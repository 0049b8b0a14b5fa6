"""Regenerate the documentation: ``make docs``, from the root of the repository. Starts no JVM.

``docs/findings.md`` comes from ``ckpt.restart.diagnoses``, ``docs/errors.md`` from ``ckpt.inspection.explain``,
``docs/api.md`` from the docstrings of what ``ckpt`` exports, and the table of commands in README.md from their help. In
docs/contract.md the keys of a document come from its dataclass. In
README.md, docs and runbooks, the text after ``$ ckpt ...`` in a console block is what that command prints. What
async-gap.md shows of Spark comes from a real Kafka query: ``make runbooks`` writes that.
"""

import ast
import inspect
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import is_dataclass
from enum import StrEnum
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer.main
from typer.testing import CliRunner

import ckpt
from ckpt.inspection.explain.catalog import KnownError, catalog, versions_of
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Asked, Diagnosis
from ckpt.versions import Spark

PAGE = Path(__file__).parent / "findings.md"
README = Path(__file__).parent.parent / "README.md"
RUNBOOK = Path(__file__).parent / "runbooks" / "async-gap.md"
AT_ROOT = (
    README,
    PAGE.with_name("quickstart.md"),
    PAGE.with_name("explain.md"),
    PAGE.with_name("export.md"),
    PAGE.with_name("state.md"),
    PAGE.with_name("rewind.md"),
    PAGE.with_name("offsets.md"),
    *(RUNBOOK.with_name(f"{name}.md") for name in ("handoff", "changelog", "provider")),
)
SAMPLE = README.parent / "sample_checkpoints" / "async-kafka-4.2"
WRITTEN = RUNBOOK.with_suffix("")  # the batches that the query wrote when it was started, as Spark left them
STARTED = "checkpoints/orders"  # the checkpoint that the runbook starts the query on
_COMMANDS = re.compile(r"^\| command \| what it does \|\n(?:\|[^\n]*\n)+", re.M)
_BLOCK = re.compile(r"```console\n\$ (?P<words>(?:ckpt|spark-submit) [^\n]*)\n.*?```", re.S)
HEAD = """# Findings

Written by `make docs` from `ckpt/restart/diagnoses/`; a test compares the two. A code is never reused.
Errors stop a restart, lose data or make state unreadable; warnings deserve a look before the next start; notes never
change the exit status.
What only concerns a start that nobody will try (a Spark version older than the one that wrote the checkpoint, or
asynchronous tracking of a stateful query) is a note unless that version or mode was asked for by name.

| code | name | severity |
|---|---|---|
"""


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
    remedy = _plain(diagnosis.remedy) if diagnosis.remedy else "Nothing has to be done."
    head = f"## {diagnosis.code} {diagnosis.name}\n\n{_severity(diagnosis)}"
    return f"{head}\n\n{_in_lines(_plain(diagnosis.meaning))}\n\n**What to do**: {_in_lines(remedy)}\n"


def _in_lines(text: str) -> str:
    """One sentence per line, so that a diff shows which one has changed."""
    return re.sub(r"(?<=[a-z0-9`)\]][.!?]) (?=[A-Z`])", "\n", text)


def _plain(text: str) -> str:
    return text.replace("{checkpoint}", "CHECKPOINT").replace("{path}", "the file named").replace("{batch}", "N")


ERRORS = PAGE.with_name("errors.md")
ERRORS_HEAD = """# Errors

Written by `make docs` from `ckpt/inspection/explain/catalog.toml`; a test compares the two. 
`ckpt explain` finds these in a message or in a whole driver log ([how](explain.md)).
The error classes are those of Spark 3.5 to 4.3, of its Kafka connector and of Delta, from their own lists.

| says | means | findings |
|---|---|---|
"""


def errors_page() -> str:
    """``docs/errors.md`` as it should read."""
    names = {one.code: one.name for one in all_diagnoses()}
    rows = [f"| `{_says(one)}` | [{one.title}](#{one.id}) | {_codes(one, names)} |" for one in catalog()]
    return ERRORS_HEAD + "\n".join(rows) + "\n\n" + "\n".join(_error(one, names) for one in catalog())


def _says(error: KnownError) -> str:
    text = error.says[0] if error.says else error.classes[0]
    return text.replace("{n}", "N").replace("{}", "...").replace("{end}", "").replace("|", "\\|").strip()


def _codes(error: KnownError, names: dict[str, str]) -> str:
    return ", ".join(f"[{code}](findings.md#{code.lower()}-{names[code]})" for code in error.codes)


def _error(error: KnownError, names: dict[str, str]) -> str:
    classes = [f"`{name}` ({_span(versions_of(name))})" for name in error.classes]
    facts = [
        f"Said by {error.system}, {error.since}.",
        *([f"Error class: {', '.join(classes)}."] if classes else []),
        *([f"Findings: {_codes(error, names)}."] if error.codes else []),
        *([f"Command: `{error.command}`."] if error.command else []),
        f"Source: {error.source}.",
    ]
    says = f"```text\n{error.sample}\n```"
    head = f"## {error.id}\n\n**{error.title}**\n\n{says}"
    cause, cure = _in_lines(error.cause), _in_lines(error.cure)
    shown = "\n".join(facts)
    return f"{head}\n\n{cause}\n\n**What to do**: {cure}\n\n{shown}\n"


def _span(versions: tuple[str, ...]) -> str:
    first, last = versions[0], versions[-1]
    return first if first == last else f"{first} to {last}"


CONTRACT = PAGE.with_name("contract.md")
DOCUMENTS = {
    "inspect": ("document", "InspectionDocument"),
    "repair": ("ways", "WaysDocument"),
    "rewind": ("rewind", "RewindDocument"),
    "skip": ("skip", "SkipDocument"),
    "repair-async": ("repair", "RepairDocument"),
    "relocate": ("relocation", "RelocationDocument"),
    "prune": ("pruning", "PruneDocument"),
    "offsets set": ("offsets_change", "OffsetsDocument"),
    "offsets import": ("offsets_change", "OffsetsDocument"),
    "explain": ("explain", "ExplanationDocument"),
    "preflight": ("preflight", "PreflightDocument"),
    "scan": ("fleet", "ScanDocument"),
    "copy": ("copying", "CopyDocument"),
    "rewrite": ("rewriting", "RewriteDocument"),
    "import-state": ("rewriting", "ImportDocument"),
    "handoff": ("handoff", "HandoffDocument"),
    "offsets show": ("positions", "PositionsDocument"),
    "migrate provider": ("provider", "ProviderDocument"),
    "migrate changelog": ("changelog", "ChangelogDocument"),
    "migrate transform-with-state": ("transform", "TransformDocument"),
    "state show": ("rows", "RowsDocument"),
    "state count": ("rows", "CountsDocument"),
    "state diff": ("rows", "DiffDocument"),
    "state keys": ("rows", "SizesDocument"),
    "state verify": ("verification", "VerificationDocument"),
}
"""Module and class of each declared document; ``docs/contract.md`` has the keys of the others as they are."""
_KEY_TABLE = r"(### JSON of `ckpt {}`\n(?:[^|\n][^\n]*\n|\n)*)(?:\|[^\n]*\n)+"
_JSON_TYPES = {int: "integer", str: "string", bool: "boolean", float: "number", NoneType: "null"}


def contract_page() -> str:
    """``docs/contract.md`` with the keys of the declared documents and the known Spark versions."""
    text = CONTRACT.read_text(encoding="utf-8")
    models: _Models = {}
    for command, (module, name) in DOCUMENTS.items():
        document = getattr(import_module(f"{_script().module.partition('.')[0]}.render.{module}"), name)
        rows = [f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in document_keys(document, models)]
        table = "".join(["| key | type | meaning |\n|---|---|---|\n", *rows]).replace("|  |\n", "| |\n")
        text = re.sub(_KEY_TABLE.format(command), lambda found, table=table: found[1] + table, text)
        models = models or {kind: path for path, kind in _objects(document)}
    return re.sub(r"(?m)^(\| `--spark` \|)[^|]*", rf"\1 {', '.join(Spark)} ", text)


_Models = dict[tuple[type, bool], str]
"""Where the keys of an object are listed already, by its class and whether it may be null."""


def document_keys(
    document: type, models: _Models, prefix: str = "", like: type | None = None
) -> Iterator[tuple[str, str, str]]:
    """The path, type and meaning of each key of a document, in the order of its JSON, but those that ``like`` has."""
    listed = get_type_hints(like, include_extras=True) if like else {}
    for name, annotation in get_type_hints(document, include_extras=True).items():
        if listed.get(name) != annotation:
            yield from _key(prefix + name.rstrip("_"), annotation, models)


def _key(path: str, annotation: Any, models: _Models) -> Iterator[tuple[str, str, str]]:
    annotation, meaning = _meaning(annotation)
    kinds = _kinds(annotation)
    inner = next(filter(is_dataclass, kinds), None)
    like = next((base for base in getattr(inner, "__mro__", ()) if (base, NoneType in kinds) in models), None)
    yield path, f"as `{models[like, NoneType in kinds]}`" if like else _json_type(annotation), meaning
    for kind in kinds:
        if get_origin(kind) is tuple:
            yield from (row for element in get_args(kind)[:1] for row in _key(f"{path}[]", element, models))
    if inner is not None:
        yield from document_keys(inner, models, f"{path}.", like)


def _objects(document: type, prefix: str = "") -> Iterator[tuple[str, tuple[type, bool]]]:
    """The path and the class of each object in a document, the last first."""
    for name, annotation in reversed(get_type_hints(document, include_extras=True).items()):
        path, kinds = prefix + name.rstrip("_"), _kinds(_meaning(annotation)[0])
        if get_origin(kinds[0] if kinds else None) is tuple:
            path, kinds = f"{path}[]", _kinds(_meaning(get_args(kinds[0])[0])[0])
        for kind in filter(is_dataclass, kinds):
            yield from _objects(kind, f"{path}.")
            yield path, (kind, NoneType in kinds)


def _meaning(annotation: Any) -> tuple[Any, str]:
    """A type without its notes, and the line that says what it means."""
    inner, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return inner, "".join(note for note in notes if isinstance(note, str))


def _json_type(annotation: Any) -> str:
    """A type as the contract names it, such as ``integer or null``."""
    names: list[str] = []
    for kind in _kinds(annotation):
        if get_origin(kind) is Literal:
            names += (f"`{word}`" for word in get_args(kind))
        elif isinstance(kind, type) and issubclass(kind, StrEnum):
            names += (f"`{word}`" for word in kind)
        else:
            names.append("list" if get_origin(kind) is tuple else _JSON_TYPES.get(kind, "object"))
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "any"


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type; none for any JSON value."""
    kinds = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)
    return () if any(get_origin(kind) in (list, dict, Mapping) for kind in kinds) else kinds


API = {
    "Inspect": (
        "open_checkpoint",
        "inspect",
        "scan",
        "read_sink",
        "ask_sources",
        "source_options",
        "verify_state",
        "Checkpoint",
        "Inspection",
        "Scan",
        "ScannedRoot",
        "ScannedCheckpoint",
        "WorstFinding",
        "LiveSource",
        "SinkLog",
        "SinkKind",
        "SinkWriter",
        "SinkOutlook",
        "SinkOutcome",
        "Spark",
        "StateVerification",
        "Estimate",
        "explain_error",
        "Explanation",
        "ErrorMatch",
        "KnownError",
    ),
    "Before a start": (
        "preflight",
        "describe_query",
        "read_query",
        "Readiness",
        "QueryDescription",
        "DescribedSource",
        "DescribedOperator",
    ),
    "Rewind, repair and relocate": (
        "repair_checkpoint",
        "rewind",
        "skip",
        "repair_async",
        "relocate_checkpoint",
        "copy_checkpoint",
        "prune_checkpoint",
        "PrunePlan",
        "Pruned",
        "rewrite_checkpoint",
        "on_spark",
        "import_state",
        "write_state",
        "Rewrite",
        "RewrittenUnit",
        "Form",
        "How",
        "Replayed",
        "set_offsets",
        "export_offsets",
        "document_of",
        "import_offsets",
        "Strategy",
        "WayName",
        "Cost",
        "WaysPlan",
        "Way",
        "RewindPlan",
        "SkipPlan",
        "RepairPlan",
        "RelocationPlan",
        "CheckpointCopy",
        "OffsetsPlan",
        "ImportPlan",
        "Receipt",
    ),
    "Hand off to a new query": ("hand_off", "snippet", "show_offsets", "Handoff", "Language", "Positions"),
    "Read and export state": (
        "state_units",
        "read_state",
        "read_state_arrow",
        "read_state_batches",
        "show_state",
        "count_state",
        "diff_state",
        "measure_state",
        "Part",
        "read_changes",
        "read_initial_state",
        "export_state",
        "plan_export",
        "ExportRequest",
        "Action",
        "Shape",
        "Format",
        "Mode",
        "Engine",
        "Session",
        "StateUnit",
        "StateRows",
        "StateCounts",
        "StateCount",
        "StateDiff",
        "UnitDiff",
        "ChangedRow",
        "Change",
        "StateSizes",
        "HeavyKey",
        "PartitionSize",
        "ExportPlan",
        "StateExport",
        "ExportPart",
    ),
    "Migrate": (
        "switch_changelog",
        "verify_changelog",
        "Changelog",
        "ChangelogSwitch",
        "move_provider",
        "ToProvider",
        "ProviderMove",
        "migrate_to_transform_with_state",
        "Api",
        "TransformPlan",
        "TransformMigration",
    ),
    "Errors": (
        "CkptError",
        "StorageError",
        "NotFound",
        "NotACheckpoint",
        "UsageError",
        "StateDamaged",
        "SparkMissing",
        "SparkFailed",
    ),
}
API_HEAD = """# ckpt in Python

Written by `make docs` from the docstrings of what `ckpt` exports; a test compares the two and runs the examples, at
the root of this repository. Every command is one of these calls: `import ckpt`. Errors are `CkptError`; damage in a
checkpoint is data. Messages name arguments in backquotes where the command line names options. Importing `ckpt`
imports neither pyspark nor pandas.
"""


def api_page() -> str:
    """``docs/api.md`` as it should read."""
    parts = [API_HEAD]
    for title, names in API.items():
        parts.append(f"## {title}\n")
        parts += (_api_entry(name, getattr(ckpt, name)) for name in names)
    return "\n".join(parts)


def _api_entry(name: str, found: Any) -> str:
    source = dedent(inspect.getsource(found))
    (node,) = ast.parse(source).body
    if isinstance(node, ast.ClassDef):
        base = "".join(f"({ast.unparse(one)})" for one in node.bases[:1])
        lines = source.splitlines()
        fields = [lines[one.lineno - 1] for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
        shown = "\n".join([f"class {name}{base}", *fields])
    else:
        node.name, node.body, node.decorator_list = name, [ast.Pass()], []
        shown = ast.unparse(node).removesuffix(":\n    pass")
    return f"### {name}\n\n```python\n{shown}\n```\n\n{_docstring(inspect.getdoc(found) or '')}\n"


_SECTION = re.compile(r"^(Args|Raises|Returns):\n((?:    .*\n?|\n)+)", re.M)


def _docstring(text: str) -> str:
    """A docstring as Markdown: its sections as lists, its examples as blocks."""
    text = _SECTION.sub(lambda found: f"**{found[1]}**\n\n{_listed(found[2])}\n", text.replace("``", "`"))
    return re.sub(r"^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M).rstrip()


def _listed(text: str) -> str:
    entries = re.sub(r"\n\s{4,}", " ", dedent(text).strip()).splitlines()
    return "\n".join(re.sub(r"^([\w, ]+): ", r"- `\1`: ", entry) for entry in entries) + "\n"


def at_root(page: Path) -> str:
    """README.md, or a page on bundled checkpoints, with the output of its commands as it is now."""
    text = _COMMANDS.sub(lambda _: commands_table(), page.read_text(encoding="utf-8"))
    with chdir(README.parent):
        return _BLOCK.sub(lambda block: _shown(block, _ckpt(block["words"])), text)


def commands_table() -> str:
    """Every command with the first sentence of its help."""
    rows = [f"| `ckpt {name}` | {_first_sentence(command.help)} |\n" for name, command in _commands(_group(), "")]
    return "".join(["| command | what it does |\n", "|---|---|\n", *rows])


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The commands of a group by full name, in the order of the help."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _script() -> EntryPoint:
    (script,) = entry_points(group="console_scripts", name="ckpt")
    return script


def _app() -> Any:
    return _script().load()


def _group() -> Any:
    return typer.main.get_command(_app())


def _ckpt(command: str) -> str:
    """What a command prints, run where we are."""
    return CliRunner().invoke(_app(), shlex.split(command)[1:]).stdout


def _shown(block: re.Match[str], output: str) -> str:
    return f"```console\n$ {block['words']}\n{output.rstrip()}\n```"


def runbook(start: Callable[[Path], str] | None = None) -> str:
    """The runbook with the current output of its commands.

    Args:
        start: Starts the query on a checkpoint and returns what to show of it. Without it that part of the page stays
            as it is, and the checkpoint gets the files that the query wrote when the page was last generated with it.

    """

    def filled(block: re.Match[str]) -> str:
        if not block["words"].startswith("spark-submit"):
            return _shown(block, _ckpt(block["words"]))
        if start:
            return _shown(block, start(Path(STARTED).absolute()))
        if "Exception" not in block[0]:
            shutil.copytree(WRITTEN, STARTED, dirs_exist_ok=True)
        return block[0]

    page = RUNBOOK.read_text(encoding="utf-8")
    with TemporaryDirectory() as scratch, chdir(scratch):
        for name in ("orders", "clicks", "payments"):
            shutil.copytree(SAMPLE, Path("checkpoints", name))
        for commit in (".31.crc", "31"):
            Path("checkpoints/clicks/commits", commit).unlink()
        for file in Path("checkpoints").rglob("*"):
            os.utime(file, (0, 0))
        return _BLOCK.sub(filled, page)


if __name__ == "__main__":
    PAGE.write_text(findings_page(), encoding="utf-8")
    ERRORS.write_text(errors_page(), encoding="utf-8")
    PAGE.with_name("api.md").write_text(api_page(), encoding="utf-8")
    CONTRACT.write_text(contract_page(), encoding="utf-8")
    for page in AT_ROOT:
        page.write_text(at_root(page), encoding="utf-8")
    RUNBOOK.write_text(runbook(), encoding="utf-8")
