"""``docs/api.md``, from the docstrings of what ``ckpt`` exports."""

import ast
import inspect
import re
from textwrap import dedent
from typing import Any

import ckpt

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
HEAD = """# ckpt in Python

Written by `make docs` from the docstrings of what `ckpt` exports; a test compares the two and runs the examples, at
the root of this repository. Every command is one of these calls: `import ckpt`. Errors are `CkptError`; damage in a
checkpoint is data. Messages name arguments in backquotes where the command line names options. Importing `ckpt`
imports neither pyspark nor pandas.
"""


def api_page() -> str:
    """``docs/api.md`` as it should read."""
    parts = [HEAD]
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
        assert isinstance(node, ast.FunctionDef)
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
