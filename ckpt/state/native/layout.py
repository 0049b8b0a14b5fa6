"""How the rows of a unit are stored: in which store and column family, and how its keys and values are encoded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ckpt import settings
from ckpt.formats.rows.errors import LeftToSpark, Undecodable
from ckpt.formats.rows.keys import encoder_with_prefix
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.model import ColumnFamily, Json, Operator, Provider, Store
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit, UnitKind

_TIMERS = "_keyToTimestamp"
_MERGED = "keyWithTsToValues"  # join state format 4: the rows of a key and time in one value


@dataclass(frozen=True, slots=True)
class UnitLayout:
    """The form in which a unit is stored."""

    store: str
    family: str | None  # column family; None where the store has none
    key: Json  # StructTypes in Spark's JSON
    value: Json
    encoder: Json  # of keys, as ``keyStateEncoderSpec``; only RocksDB has any
    delimiter: bytes  # between the rows of a list
    several: bool = False  # a value is a list of rows
    avro: bool = False

    @property
    def rows_are_keys(self) -> bool:
        """True if a key is stored as one row."""
        return not self.avro and self.encoder in (None, encoder_with_prefix(0))


def layout_of(chosen: Chosen, unit: StateUnit) -> UnitLayout:
    """The layout of a unit. Raises Undecodable where the files do not say enough to be sure."""
    if unit.schema is None:
        raise Undecodable(f"{chosen.checkpoint.uri}: {unit.label}: its state schema does not say what its rows are")
    state = chosen.checkpoint.state
    operators = {operator.id: operator for operator in state.operators} if state else {}
    stores = {store.name: store for store in operators[unit.operator].stores}
    name = _family_name(unit, stores)
    store = stores.get(unit.row_store or unit.stores[0]) or stores[DEFAULT_STORE]
    families = {family.name: family for family in store.column_families}
    if not families:
        delimiter = delimiter_of(chosen.recorded)
        return UnitLayout(store.name, None, store.key_schema, store.value_schema, _encoder(unit, store), delimiter)
    if name not in families:
        raise Undecodable(f"{chosen.checkpoint.uri}: no state schema describes the rows of {unit.label}")
    return _of_family(chosen, operators[unit.operator], store, families[name])


def layouts_of(chosen: Chosen, operator: Operator) -> Iterator[UnitLayout]:
    """The layout of every column family of an operator, those included that only Spark reads.

    Left out are those of which the files do not say enough to be sure.
    """
    for store in operator.stores:
        for family in store.column_families:
            try:
                yield _of_family(chosen, operator, store, family)
            except Undecodable:
                continue


def _of_family(chosen: Chosen, operator: Operator, store: Store, family: ColumnFamily) -> UnitLayout:
    uri, name = chosen.checkpoint.uri, family.name
    if family.key_encoder is None:
        raise Undecodable(f"{uri}: its state schema does not say how keys of {name} are encoded")
    avro = bool(operator.variables) and chosen.recorded.get(settings.ENCODING_FORMAT) == "avro"
    if avro and family.evolved:
        raise LeftToSpark(f"{uri}: the schema of {name} has changed, and ckpt does not read Avro rows of older ones")
    lists = (variable.name for variable in operator.variables if variable.kind == "ListState")
    return UnitLayout(
        store=store.name,
        family=name,
        key=family.key_schema,
        value=family.value_schema,
        encoder=family.key_encoder,
        several=name.endswith(_MERGED) or name in lists,
        avro=avro,
        delimiter=delimiter_of(chosen.recorded),
    )


def delimiter_of(recorded: Mapping[str, str]) -> bytes:
    """Return the bytes that the merge operator puts between the rows of a list, by the settings in the offsets."""
    return b"," if recorded.get(settings.MERGE_OPERATOR, "1") == "1" else b""


def _family_name(unit: StateUnit, stores: dict[str, Store]) -> str:
    """The column family that holds the rows."""
    if unit.buffer is not None:
        return unit.buffer.name
    if unit.kind is UnitKind.TIMERS:
        families = [family.name for store in stores.values() for family in store.column_families]
        return next((name for name in families if name.endswith(_TIMERS) and name[0] == "$"), "")
    return unit.variable or DEFAULT_COLUMN_FAMILY


def _encoder(unit: StateUnit, store: Store) -> Json:
    """The encoder of a store without families: operator metadata has the number of prefix columns."""
    if unit.provider is Provider.HDFS:
        return None
    columns = store.prefix_columns or unit.prefix_columns or 0
    return encoder_with_prefix(columns)
