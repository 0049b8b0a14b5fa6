"""Files that hold the state of a batch (``StoreFiles``: a store in a partition), and how a unit's rows lie in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ckpt import settings
from ckpt.advice import words
from ckpt.checkpoint.state.chains import Chain, Context, WantedVersion, chain_to, read_lineages
from ckpt.checkpoint.state.folders import StorePartition, find_operators
from ckpt.checkpoint.state.read_steps import run
from ckpt.errors import WITH_SPARK, CkptError, LeftToSpark, TooLarge, Undecodable
from ckpt.formats.rows.codecs import MOST_BYTES
from ckpt.formats.rows.keys import encoder_with_prefix
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.statefiles import DEFAULT_STORE, LZ4, TIMED_ROWS, Lineage
from ckpt.model import ColumnFamily, Json, Operator, Provider, StateFileKind, Store
from ckpt.settings import ROW_CHECKSUM
from ckpt.state.book import BOOK
from ckpt.state.reading.choose import StateDamaged
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.storage import Storage

_TIMERS = "_keyToTimestamp"


@dataclass(frozen=True, slots=True)
class UnitLayout:
    """The form in which a unit is stored."""

    store: str
    family: str | None  # column family; None where the store has none
    key: Json  # StructTypes in Spark's JSON
    value: Json
    encoder: Json  # of keys, as ``keyStateEncoderSpec``; only RocksDB has any
    several: bool = False  # a value is a list of rows
    avro: bool = False
    only_keys: bool = False  # values may be one NULL each, whatever their schema says
    stated: bool = False  # the schemas are those that a user states
    generation: int = 0  # of the value's schema, which its Avro rows name
    older: tuple[tuple[int, Json], ...] = ()  # value schemas of earlier generations

    @property
    def generations(self) -> dict[int, Json]:
        """The schemas of values, by the generation that Avro rows name."""
        return {**dict(self.older), self.generation: self.value}

    @property
    def rows_are_keys(self) -> bool:
        """True if a key is stored as one row."""
        return not self.avro and self.encoder in (None, encoder_with_prefix(0))


def layout_of(chosen: ChosenState, unit: StateUnit) -> UnitLayout:
    """The layout of a unit. Raises Undecodable where the files do not say enough to be sure."""
    if unit.schema is None:
        raise Undecodable(f"{chosen.checkpoint.uri}: {unit.label}: its state schema does not describe its rows")
    operator = next(own for own in chosen.checkpoint.operators if own.id == unit.operator)
    stores = {store.name: store for store in operator.stores}
    name = _family_name(unit, stores)
    store = stores[find_store(unit)]
    families = {family.name: family for family in store.column_families}
    if not families:
        prefix = store.prefix_columns or unit.prefix_columns or 0  # the former from operator metadata
        encoder = None if unit.provider is Provider.HDFS else encoder_with_prefix(prefix)
        layout = UnitLayout(store.name, None, store.key_schema, store.value_schema, encoder)
        return replace(layout, stated=bool(chosen.stated), only_keys=unit.kind is UnitKind.DEDUPLICATION)
    if name not in families:
        raise Undecodable(f"{chosen.checkpoint.uri}: no state schema describes the rows of {unit.label}")
    return _of_family(chosen, operator, store, families[name])


def find_store(unit: StateUnit) -> str:
    """Return the store that has the rows of a unit."""
    return DEFAULT_STORE if DEFAULT_STORE in unit.stores else unit.row_store or unit.stores[0]


def layouts_of(chosen: ChosenState, operator: Operator) -> Iterator[UnitLayout]:
    """The layout of every column family of an operator, those included that only Spark reads.

    Left out are those of which the files do not say enough to be sure.
    """
    for store in operator.stores:
        for family in store.column_families:
            try:
                yield _of_family(chosen, operator, store, family)
            except Undecodable:
                continue


def _of_family(chosen: ChosenState, operator: Operator, store: Store, family: ColumnFamily) -> UnitLayout:
    uri, name = chosen.checkpoint.uri, family.name
    if family.key_encoder is None:
        raise Undecodable(f"{uri}: its state schema does not say how keys of {name} are encoded")
    avro = bool(operator.variables) and chosen.recorded.get(settings.ENCODING_FORMAT) == "avro"
    generations = [number for number, _ in family.older]
    whole = generations == list(range(len(generations))) and len(generations) == (family.generation or 1)
    if avro and family.evolved and not whole:
        raise LeftToSpark(f"{uri}: the schema of {name} has changed, and some of the earlier ones are missing")
    lists = (variable.name for variable in operator.variables if variable.kind == "ListState")
    return UnitLayout(
        store=store.name,
        family=name,
        key=family.key_schema,
        value=family.value_schema,
        encoder=family.key_encoder,
        several=name.endswith(TIMED_ROWS) or name in lists,
        avro=avro,
        generation=family.generation,
        older=family.older,
    )


def delimiter_of(recorded: Mapping[str, str]) -> bytes:
    """Return the bytes that the merge operator puts between the rows of a list, by the settings in the offsets."""
    return b"," if recorded.get(settings.MERGE_OPERATOR, "1") == "1" else b""


def _family_name(unit: StateUnit, stores: dict[str, Store]) -> str:
    if unit.buffer is not None:
        return unit.buffer.name
    if unit.kind is UnitKind.TIMERS:
        families = [family.name for store in stores.values() for family in store.column_families]
        return next((name for name in families if name.endswith(_TIMERS) and name[0] == "$"), "")
    return unit.variable or DEFAULT_COLUMN_FAMILY


MOST_ROWS = 1 << 16
"""Rows of a batch."""

_PIECE = 8 << 20  # bytes that are read at a time


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """One store in one partition, and the files that make its version."""

    place: StorePartition
    chain: Chain
    storage: Storage
    codec: str
    checksums: bool  # of each row, in it
    delimiter: bytes  # between the rows of a list
    most: int = MOST_BYTES  # bytes of a file, or all files of an HDFS-backed store, that are unpacked into memory

    @property
    def snapshot(self) -> str | None:
        """The path of the snapshot that it begins with; None where it begins empty."""
        snapshot = self.chain.snapshot
        return None if snapshot is None else f"{self.place.folder}/{self.place.names.snapshots[snapshot]}"

    @property
    def logs(self) -> tuple[str, ...]:
        """The paths of the deltas or changelogs after it, oldest first."""
        return tuple(f"{self.place.folder}/{self.place.names.logs[log]}" for log in self.chain.logs)

    @property
    def paths(self) -> list[str]:
        """The paths of all of them, in the order in which they are loaded."""
        return [*filter(None, [self.snapshot]), *self.logs]

    @property
    def size(self) -> int:
        """The bytes of these files."""
        snapshot = self.chain.snapshot
        own = 0 if snapshot is None else self.place.snapshot(snapshot).size
        return own + sum(self.place.log(log).size for log in self.chain.logs)

    def pieces(self, path: str) -> Iterator[bytes]:
        """A file of it, from its beginning, read as it is asked for."""
        return self.storage.read_pieces(path, _PIECE)

    @contextmanager
    def refusing(self, path: str) -> Iterator[None]:
        """Name a file in what is raised because it is not decoded."""
        try:
            yield
        except Undecodable as error:
            raise self.refused(path, error) from None

    def refused(self, path: str, why: Exception | str) -> CkptError:
        """Why a file of it is not decoded, as an error that names it."""
        kind = type(why) if isinstance(why, Undecodable) else Undecodable
        cause = why.kind if isinstance(why, LeftToSpark) else why.words if isinstance(why, CkptError) else str(why)
        unread = words("{uri}: {path} cannot be read without Spark: {why}", uri=self.storage.uri, path=path, why=cause)
        return kind(unread)


def find_store_files(
    chosen: ChosenState, operator: int, store: str, only: int | None = None, *, planned: bool = False
) -> Iterator[StoreFiles]:
    """The files of a store, partition by partition, or of one. Raises StateDamaged where some are missing.

    ``planned``: of the version after, which a batch that is planned has written; only in checkpoint format 1.
    """
    folders = {folder.id: folder for folder in find_operators(chosen.checkpoint.listing, chosen.units[0].provider)}
    partitions = folders[operator].stores.get(store, {})
    count, lost = context_of(chosen).shuffle_partitions, chosen.question.lost or ()
    for partition in sorted(partitions) if only is None else partitions.keys() & {only}:
        if (count is None or partition < count) and (operator, partition) not in lost:
            yield find_files_of(chosen, partitions[partition], planned=planned)


def find_files_of(chosen: ChosenState, store_partition: StorePartition, *, planned: bool = False) -> StoreFiles:
    """The files of a store in one partition. Raises StateDamaged where some are missing."""
    target = context_of(chosen).target(store_partition)
    if target is None:
        parts = {"folder": store_partition.folder, "batch": chosen.moment.batch}
        raise StateDamaged(BOOK.text("read_no_version", uri=chosen.checkpoint.uri, **parts))
    if planned:
        target = WantedVersion(target.version + 1)
    chain = chain_to(store_partition.names, target, _read_lineage(chosen, store_partition, target))
    if not chain.complete:
        parts = {"folder": store_partition.folder, "version": target.version}
        raise StateDamaged(BOOK.text("read_missing", uri=chosen.checkpoint.uri, **parts))
    return make_store_files(chosen, store_partition, chain)


def make_store_files(chosen: ChosenState, store_partition: StorePartition, chain: Chain) -> StoreFiles:
    """Files of a store in one partition, written as the offsets record."""
    codec, checksums = context_of(chosen).codec or LZ4, has_row_checksums(chosen)
    return StoreFiles(store_partition, chain, chosen.storage, codec, checksums, delimiter_of(chosen.recorded))


def has_row_checksums(chosen: ChosenState) -> bool:
    """Tell whether each stored row has its checksum in it."""
    return chosen.recorded.get(ROW_CHECKSUM, "false") == "true"


def find_fitting_files(chosen: ChosenState, operator: int, store: str, only: int | None = None) -> Iterator[StoreFiles]:
    """Find files of which none is too large for memory. Raises TooLarge: of HDFS-backed stores before any is read."""
    stores = map(_check_size, find_store_files(chosen, operator, store, only))
    yield from [*stores] if chosen.units[0].provider is Provider.HDFS else stores


def _check_size(files: StoreFiles) -> StoreFiles:
    """Raise TooLarge where the files that are held in memory are larger than what may be."""
    logs = sum(files.place.log(log).size for log in files.chain.logs)
    held = files.size if files.place.names.log_kind is StateFileKind.DELTA else logs
    if held > files.most:
        why = f"its files have {held:,} bytes, but at most {files.most:,} are unpacked into memory"
        raise files.refused(files.place.folder, TooLarge.of("{why}: {spark}", why=why, spark=WITH_SPARK))
    return files


def context_of(chosen: ChosenState) -> Context:
    """Return the part of the logs that describes the chosen batch."""
    commit = chosen.checkpoint.commits.readable(chosen.moment.batch)
    return Context(
        conf=chosen.recorded,
        latest=chosen.moment.batch,
        needed_version=chosen.moment.state_version,
        unique_ids=(commit.state_unique_ids or {}) if commit else {},
        committed=None,
    )


def _read_lineage(chosen: ChosenState, store_partition: StorePartition, target: WantedVersion) -> Lineage | None:
    """Format 2: which files lead to a version, as its changelog says. Raises Undecodable where that cannot be read."""
    this, names = (target.version, target.unique_id), store_partition.names
    files = make_store_files(chosen, store_partition, Chain(None, (this,)))
    reading = run(read_lineages({store_partition: target}, files.codec), chosen.storage.read_many)
    lineage = reading.get(store_partition)
    if lineage is None and this[1] is not None and this not in names.snapshots and this in names.logs:
        why = LeftToSpark(f"ckpt cannot read from it which files lead to it (its codec is {files.codec})")
        raise files.refused(files.logs[0], why)
    return lineage
