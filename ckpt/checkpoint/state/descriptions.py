"""Operator metadata and state schemas: the small files in ``state/`` that describe operators and stores."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from ckpt.checkpoint.state.folders import STATE, OperatorFolder, sort_numbers, stores_of
from ckpt.checkpoint.state.read_steps import Step
from ckpt.errors import NotFound
from ckpt.formats.limits import LARGEST_RECORD, refuse_too_large
from ckpt.formats.operators import parse_operator_metadata
from ckpt.formats.schemas import parse_state_schema
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.model import ColumnFamily, Fault, Json, Operator, OperatorMetadata, Unreadable
from ckpt.storage.base import Listing, ReadRequest

_SCHEMAS = "_stateSchema"
_GENERATIONS = 64  # schema files of a store that are read: Spark counts the generations of Avro rows, and allows 16
_Parsed = TypeVar("_Parsed")
_OLDER = 2  # which file is the odd one out of three shows which was edited


class Description(NamedTuple):
    """Metadata and schemas of one operator, as far as they can be read."""

    metadata: OperatorMetadata | Unreadable | None
    schemas: Mapping[str, tuple[ColumnFamily, ...] | Unreadable]  # by store
    older: tuple[OperatorMetadata, ...] = ()  # metadata v2 of earlier batches, newest first, as far as it can be read

    @property
    def known(self) -> OperatorMetadata | None:
        """The operator's metadata, where it can be read."""
        return None if isinstance(self.metadata, Unreadable) else self.metadata

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The files that cannot be read."""
        return tuple(record for record in (self.metadata, *self.schemas.values()) if isinstance(record, Unreadable))


def describe(
    listing: Listing, folders: tuple[OperatorFolder, ...]
) -> Step[tuple[dict[int, Description], dict[str, bytes]]]:
    """Read metadata and schemas of every operator; also returns what was read of the files of both, by path."""
    metadata = {folder.id: path for folder in folders if (path := _find_metadata(listing, folder))}
    schemas = {(folder.id, store): path for folder in folders for store, path in _find_schemas(listing, folder)}
    older = {folder.id: _find_versions(listing, folder)[-2 : -2 - _OLDER : -1] for folder in folders}
    paths = [*metadata.values(), *schemas.values(), *(path for paths in older.values() for path in paths)]
    contents: dict[str, bytes | Unreadable] = {
        path: big for path in paths if (info := listing.info(path)) and (big := refuse_too_large(path, info.size))
    }
    paths = [path for path in paths if path not in contents]
    for path, answer in zip(paths, (yield [ReadRequest(path) for path in paths]), strict=True):
        if not isinstance(answer, bytes):
            why = "it was gone when ckpt tried to read it" if isinstance(answer, NotFound) else str(answer)
        contents[path] = answer if isinstance(answer, bytes) else Unreadable(path, Fault.VANISHED, why)

    def parse(path: str, parser: Callable[[str, bytes], _Parsed | Unreadable]) -> _Parsed | Unreadable:
        data = contents[path]
        return parser(path, data) if isinstance(data, bytes) else data

    descriptions: dict[int, Description] = {}
    for folder in folders:
        own = {store: path for (operator, store), path in schemas.items() if operator == folder.id}
        of_stores = {store: parse(path, parse_state_schema) for store, path in own.items()}
        of_stores |= yield from _read_generations(listing, folder, of_stores)
        known = parse(metadata[folder.id], parse_operator_metadata) if folder.id in metadata else None
        before = (parse(path, parse_operator_metadata) for path in older[folder.id])
        records = tuple(record for record in before if isinstance(record, OperatorMetadata))
        descriptions[folder.id] = Description(known, of_stores, records)
    described = (*metadata.values(), *schemas.values())
    return descriptions, {path: data for path in described if isinstance(data := contents[path], bytes)}


def _read_generations(
    listing: Listing, folder: OperatorFolder, stores: Mapping[str, tuple[ColumnFamily, ...] | Unreadable]
) -> Step[dict[str, tuple[ColumnFamily, ...]]]:
    """The column families of stores whose schema has changed, with the earlier schemas of their values."""
    evolved = {
        name: families
        for name, families in stores.items()
        if not isinstance(families, Unreadable) and any(family.evolved for family in families)
    }
    paths = [path for name in evolved for path in _list_schema_files(listing, folder, name)[-_GENERATIONS:]]
    answers = yield [ReadRequest(path, 0, LARGEST_RECORD) for path in paths]
    older: dict[str, dict[int, Json]] = {}
    for path, answer in zip(paths, answers, strict=True):
        families = parse_state_schema(path, answer) if isinstance(answer, bytes) else ()
        for family in () if isinstance(families, Unreadable) else families:
            older.setdefault(f"{path.rpartition('/')[0]}/{family.name}", {})[family.generation] = family.value_schema
    return {
        name: tuple(
            family._replace(
                older=tuple(
                    (number, kind)
                    for number, kind in sorted(older.get(f"{folder.path}/{_SCHEMAS}/{name}/{family.name}", {}).items())
                    if number < family.generation
                ),
            )
            for family in families
        )
        for name, families in evolved.items()
    }


def list_described_by(listing: Listing, folders: tuple[OperatorFolder, ...]) -> list[str]:
    """The files that ``describe`` reads."""
    metadata = [path for folder in folders if (path := _find_metadata(listing, folder))]
    return metadata + [path for folder in folders for _, path in _find_schemas(listing, folder)]


def list_descriptions(operator: Operator) -> Iterator[str]:
    """List the files that Spark writes where they are missing: operator metadata of version 1, a schema per store."""
    if not operator.variables:
        folder = f"{STATE}/{operator.id}"
        yield f"{folder}/_metadata/metadata"
        for store in operator.stores:
            yield f"{folder}/0/{f'{store.name}/' if store.name != DEFAULT_STORE else ''}_metadata/schema"


def _find_versions(listing: Listing, folder: OperatorFolder) -> list[str]:
    """Files of operator metadata v2, one for each batch that a start planned, oldest first."""
    versioned = f"{folder.path}/_metadata/v2"
    return [f"{versioned}/{batch}" for batch in sort_numbers(listing.in_folder(versioned))]


def _find_metadata(listing: Listing, folder: OperatorFolder) -> str | None:
    """The file of operator metadata that Spark reads: the newest of v2, or the only one of v1."""
    versions = _find_versions(listing, folder)
    if versions:
        return versions[-1]
    path = f"{folder.path}/_metadata/metadata"
    return path if listing.info(path) is not None else None


def _find_schemas(listing: Listing, folder: OperatorFolder) -> list[tuple[str, str]]:
    """The schema file of each store.

    transformWithState keeps one for each batch that changed it (the newest counts); the others keep theirs in the first
    partition (``StateSchemaCompatibilityChecker``), and Spark reads it at every start. One that was moved to another
    partition still says what the rows are.
    """
    paths: dict[str, str] = {}
    for store in listing.subfolders(f"{folder.path}/{_SCHEMAS}"):
        files = _list_schema_files(listing, folder, store)
        if files:
            paths[store] = files[-1]
    for partition in folder.partitions:
        for store, stored in stores_of(listing, f"{folder.path}/{partition}"):
            if listing.info(path := f"{stored}/_metadata/schema") is not None:
                paths.setdefault(store, path)
    return list(paths.items())


def _list_schema_files(listing: Listing, folder: OperatorFolder, store: str) -> list[str]:
    """The schema files of a store of transformWithState, one of each batch that changed it, oldest first."""
    versioned = f"{folder.path}/{_SCHEMAS}/{store}"
    names = listing.in_folder(versioned)
    by_batch = {batch: name for name in names for batch in sort_numbers([name.partition("_")[0]])}
    return [f"{versioned}/{by_batch[batch]}" for batch in sorted(by_batch)]
