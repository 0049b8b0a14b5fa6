"""``docs/contract.md``: the keys of each document, from its dataclass, and their meanings in ``keys.toml``."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ckpt.advice import Words
from ckpt.versions import Spark

from .app import script
from .places import DOCS

CONTRACT = DOCS / "contract.md"
DOCUMENTS = {
    "inspect": ("inspection", "InspectionDocument"),
    "repair": ("ways", "WaysDocument"),
    "rewind": ("rewind", "RewindDocument"),
    "skip": ("skip", "SkipDocument"),
    "repair-async": ("ways", "RepairDocument"),
    "relocate": ("relocation", "RelocationDocument"),
    "prune": ("pruning", "PruneDocument"),
    "offsets set": ("offsets", "OffsetsDocument"),
    "offsets import": ("offsets", "OffsetsDocument"),
    "offsets move": ("offsets", "OffsetsDocument"),
    "offsets commit": ("offsets", "OffsetsCommitDocument"),
    "explain": ("explain", "ExplanationDocument"),
    "preflight": ("preflight", "PreflightDocument"),
    "scan": ("fleet", "ScanDocument"),
    "sql": ("rows", "AnswerDocument"),
    "copy": ("copying", "CopyDocument"),
    "rewrite": ("rewriting", "RewriteDocument"),
    "merge": ("rewriting", "RewriteDocument"),
    "split": ("rewriting", "RewriteDocument"),
    "import-state": ("rewriting", "ImportDocument"),
    "evolve": ("evolving", "EvolveDocument"),
    "handoff": ("handoff", "HandoffDocument"),
    "offsets show": ("offsets", "PositionsDocument"),
    "migrate provider": ("moves", "ProviderDocument"),
    "migrate real-time": ("moves", "RealTimeDocument"),
    "migrate changelog": ("changelog", "ChangelogDocument"),
    "migrate transform-with-state": ("transform", "TransformDocument"),
    "state show": ("rows", "RowsDocument"),
    "state count": ("rows", "CountsDocument"),
    "state diff": ("rows", "DiffDocument"),
    "state keys": ("rows", "SizesDocument"),
    "state history": ("rows", "HistoryDocument"),
    "state verify": ("verification", "VerificationDocument"),
}
"""Module and class of each declared document; ``docs/contract.md`` has the keys of the others as they are."""
_MEANINGS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("keys.toml").read_text(encoding="utf-8")
)
"""By the module and the name of a class, and its key; a key that is not there has its meaning in its type."""
_KEY_TABLE = r"(### JSON of `ckpt {}`\n(?:[^|\n][^\n]*\n|\n)*)(?:\|[^\n]*\n)+"
_JSON_TYPES: dict[Any, str] = {int: "integer", str: "string", bool: "boolean", float: "number", NoneType: "null"}
_JSON_TYPES |= {Words: "string", Spark: "string"}


def contract_page() -> str:
    """``docs/contract.md`` with the keys of the declared documents and the known Spark versions."""
    text = CONTRACT.read_text(encoding="utf-8")
    models: _Models = {}
    for command, (module, name) in DOCUMENTS.items():
        document = getattr(_render(module), name)
        rows = [f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in document_keys(document, models)]
        table = "".join(["| key | type | meaning |\n|---|---|---|\n", *rows]).replace("|  |\n", "| |\n")
        text = re.sub(_KEY_TABLE.format(command), r"\1" + table.replace("\\", r"\\"), text)
        models = models or {kind: path for path, kind in _objects(document)}
    return re.sub(r"(?m)^(\| `--spark` \|)[^|]*", rf"\1 {', '.join(Spark)} ", text)


def _render(module: str) -> Any:
    return import_module(f"{script().module.partition('.')[0]}.render.{module}")


_Models = dict[tuple[Any, bool], str]
"""Where the keys of an object are listed already, by its class and whether it may be null."""


def document_keys(document: Any, models: _Models, prefix: str = "", like: Any = None) -> Iterator[tuple[str, str, str]]:
    """The path, type and meaning of each key of a document, in the order of its JSON, but those that ``like`` has."""
    listed = _explained_keys(like) if like else {}
    for name, key in _explained_keys(document).items():
        if listed.get(name) != key:
            yield from _key(prefix + name.rstrip("_"), *key, models)


def _explained_keys(document: Any) -> dict[str, tuple[Any, Mapping[str, str]]]:
    """The type of each key of an object, and what is said of it (``""``), of its elements (``[]``) and of theirs."""
    return {name: (kind, _find_meanings(document, name)) for name, kind in _render("keys").key_types(document).items()}


def _find_meanings(document: Any, name: str) -> dict[str, str]:
    """Return the meanings of a key and its parts, of the class that declares it last; none of a field of a record."""
    keys, is_own = _render("keys").Keys, any(name in get_annotations(base) for base in document.__mro__)
    for base in document.__mro__:
        if issubclass(base, keys) and base is not keys:
            said = _MEANINGS.get(f"{base.__module__.rpartition('.')[2]}.{base.__name__}", {})
            endings = {key.removeprefix(name): text for key, text in said.items() if key.startswith(name)}
            endings = {ending: text for ending, text in endings.items() if not ending.strip("[]")}
            if endings or name in get_annotations(base) or (name in base._source[1] and not is_own):
                return endings
    return {}


def _key(path: str, annotation: Any, said: Mapping[str, str], models: _Models) -> Iterator[tuple[str, str, str]]:
    annotation, meaning = _meaning(annotation)
    meaning, kinds = said.get("", meaning), _kinds(annotation)
    inner = next(filter(_render("keys").is_object, kinds), None)
    like = next((base for base in getattr(inner, "__mro__", ()) if (base, NoneType in kinds) in models), None)
    yield path, f"as `{models[like, NoneType in kinds]}`" if like else _json_type(annotation), meaning
    for kind in kinds:
        if get_origin(kind) is tuple:
            inner_said = {ending.removeprefix("[]"): text for ending, text in said.items() if ending}
            yield from (row for element in get_args(kind)[:1] for row in _key(f"{path}[]", element, inner_said, models))
    if inner is not None:
        yield from document_keys(inner, models, f"{path}.", like)


def _objects(document: Any, prefix: str = "") -> Iterator[tuple[str, tuple[Any, bool]]]:
    """The path and the class of each object in a document, the last first."""
    for name, annotation in reversed(_render("keys").key_types(document).items()):
        path, kinds = prefix + name.rstrip("_"), _kinds(_meaning(annotation)[0])
        if get_origin(kinds[0] if kinds else None) is tuple:
            path, kinds = f"{path}[]", _kinds(_meaning(get_args(kinds[0])[0])[0])
        for kind in filter(_render("keys").is_object, kinds):
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
        elif isinstance(kind, type) and issubclass(kind, StrEnum) and kind is not Spark:
            names += (f"`{word}`" for word in kind)
        else:
            names.append("list" if get_origin(kind) is tuple else _JSON_TYPES.get(kind, "object"))
    names = list(dict.fromkeys(names))
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "any"


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type; none for any JSON value."""
    kinds = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)
    kinds = tuple(_meaning(kind)[0] for kind in kinds)
    return () if any(get_origin(kind) in (list, dict, Mapping) for kind in kinds) else kinds
