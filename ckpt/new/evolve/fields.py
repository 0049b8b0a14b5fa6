"""Plans state that functions of users keep: its fields, and the variables of transformWithState, matched by name.

Nobody sees what such a function makes of its state, so no field is better than unknown.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ckpt.advice import Hole, Words, words
from ckpt.changes.plan import NoWay
from ckpt.formats.operators import TIMERS, list_variables
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import ColumnFamily, Json, Operator, StateVariable
from ckpt.new.evolve.book import BOOK, ask_old
from ckpt.new.evolve.origins import ColumnChoices, ColumnOrigin, FamilyColumns, StoreColumns, is_nullable
from ckpt.query.compare_checkpoint import can_read_avro
from ckpt.query.compare_queries import Knowledge, PartComparison, PartKind, bare, takes_values
from ckpt.query.description import DescribedFamily, DescribedOperator, spell_schema
from ckpt.state.reading.columns import Names

_WRAPPERS = ("groupState", "value")  # structs that Spark puts around the fields of a user
_TIMEOUT = "timeoutTimestamp"
_NO_TIMEOUT = -1  # ``GroupStateImpl.NO_TIMESTAMP``
_LIST = "ListState"
_COMPANIONS = ("$rowCounter_", "$count_", "$min_", "$ttl_")  # families that Spark keeps beside a variable
Refuse = Callable[["str | Words"], NoWay]


@dataclass
class FieldPlanner:
    """Matches the fields of structs; ``parts`` are what is then known of them."""

    choices: ColumnChoices
    refuse: Refuse
    parts: list[PartComparison] = field(default_factory=list)
    shown: str = ""  # how ``ckpt state show`` begins the names of fields

    def plan(self, old: Json, new: Json, path: str = "") -> tuple[ColumnOrigin, ...] | None:
        """Plan the fields of a struct; None where they stay as they are. Raises NoWay."""
        before, after = (_number_names(list(named_fields(schema))) for schema in (old, new))
        repeated = {name for schema in (old, new) for name in _list_repeated(schema)}
        matching = self._match(before, after, path, repeated)
        if repeated and matching != [*range(len(before))]:
            why = f"names of its fields repeat ({', '.join(sorted(repeated))}): those are matched by position"
            self.parts.append(PartComparison(PartKind.VALUE, None, None, Knowledge.UNKNOWN, why))
        origins = []
        for number, (name, kind) in enumerate(after):
            source, label = matching[number], _join(path, name)
            if source is None:
                origins.append(self._plan_new(name, kind, label, nullable=is_nullable((fields_of(new) or [])[number])))
                continue
            was = before[source][1]
            if fields_of(was) is not None and fields_of(kind) is not None:
                inner = self.plan(was, kind, path if name in _WRAPPERS else label)
                if inner is None and bare(was) != bare(kind):  # only names differ
                    inner = tuple(ColumnOrigin(ordinal) for ordinal, _ in enumerate(named_fields(kind)))
                origins.append(ColumnOrigin(source, fields=inner))
                continue
            if not takes_values(kind, was):
                types = f"{spell_schema(kind)}, but {spell_schema(was)} in the state"
                raise self.refuse(f"{label} is {types}: ckpt does not convert between these")
            if name != before[source][0] or bare(was) != bare(kind) or source != number:
                why = f"{label} from {_join(path, before[source][0])}, a {spell_schema(was)}"
                self.parts.append(PartComparison(PartKind.VALUE, source, number, Knowledge.UNKNOWN, why))
            origins.append(ColumnOrigin(source))
        for source, (name, _) in enumerate(before):
            if source not in matching:
                why = f"{_join(path, name)} is gone"
                self.parts.append(PartComparison(PartKind.VALUE, source, None, Knowledge.UNKNOWN, why))
        same = [origin.old for origin in origins] == list(range(len(before)))
        kept = all(bare(was) == bare(kind) for (_, was), (_, kind) in zip(before, after, strict=False))
        return None if same and kept and not any(origin.fields for origin in origins) else tuple(origins)

    def _plan_new(self, name: str, kind: Json, label: str, *, nullable: bool) -> ColumnOrigin:
        if (text := self.choices.find_default(label)) is not None:
            by_default = words("{label} is {text} in all of the state, as {--default} says", label=label, text=text)
            self.parts.append(PartComparison(PartKind.VALUE, None, None, Knowledge.UNKNOWN, by_default))
            return ColumnOrigin(None, text, given=True)
        if name == _TIMEOUT:
            why = "no group of the state has a timeout"
            self.parts.append(PartComparison(PartKind.VALUE, None, None, Knowledge.FROM_NOW_ON, why))
            return ColumnOrigin(None, _NO_TIMEOUT)
        if not nullable:
            raise self.refuse(BOOK.text("evolve_needs_default", label=label, default={label: Hole.VALUE}))
        why = f"{label} is new, and NULL in the existing state"
        self.parts.append(PartComparison(PartKind.VALUE, None, None, Knowledge.FROM_NOW_ON, why))
        return ColumnOrigin(None)

    def _find_source(self, label: str) -> str | None:
        """Find the old field, or ``-``, that somebody named for a new one; both also as ``ckpt state show`` does."""
        shown = (self.shown + label.replace(".", "_"),) if self.shown else ()
        source = next((source for name in (label, *shown) if (source := self.choices.find_source(name))), None)
        return source.removeprefix(self.shown) if source else None

    def _match(
        self, old: Sequence[tuple[str, Json]], new: Sequence[tuple[str, Json]], path: str, repeated: Collection[str]
    ) -> list[int | None]:
        """Find the old place of each field. Raises NoWay where one may have been renamed."""
        names = [name for name, _ in old]
        matching: list[int | None] = []
        answered = set()
        for number, (name, _) in enumerate(new):
            label = _join(path, name)
            source = self._find_source(label)
            if source is not None:
                own = [_join(path, each) for each in names]
                if source != "-" and source not in own:
                    raise self.refuse(f"{source} is not in the state; it has {', '.join(own)}")
                answered.add(number)
                matching.append(None if source == "-" else own.index(source))
            elif name in repeated:
                if number < len(old) and names[number] != name:
                    ask = ask_old("map_column", label)
                    raise self.refuse(BOOK.text("evolve_names_repeat", label=label, place=number + 1, asked=ask))
                matching.append(number if number < len(old) else None)
            else:
                matching.append(names.index(name) if name in names else None)
        taken = [source for source in matching if source is not None]
        if len(set(taken)) < len(taken):
            raise self.refuse(f"two fields of {path or 'the state'} would map to the same one in the state")
        free = [source for source in range(len(old)) if source not in taken]
        in_place = [bare(kind) for _, kind in old] == [bare(kind) for _, kind in new]
        for number, (name, kind) in enumerate(new):
            label = _join(path, name)
            if matching[number] is not None or number in answered or label in self.choices.defaults:
                continue
            if in_place and number in free:  # as Spark does it, which passes over names
                matching[number] = number
                continue
            rivals = [_join(path, names[source]) for source in free if takes_values(kind, old[source][1])]
            if rivals:
                ask = ask_old("map_column", label, rivals[0])
                raise self.refuse(BOOK.text("evolve_which_field", label=label, rivals=" or ".join(rivals), asked=ask))
        return matching


def _number_names(fields: Sequence[tuple[str, Json]]) -> list[tuple[str, Json]]:
    """Number names that repeat, as ``ckpt state show`` does."""
    taken = Names()
    names = [taken.free([name]) for name, _ in fields]
    unique = len({name.lower() for name, _ in fields}) == len(fields)
    return [*fields] if unique else [(name, kind) for name, (_, kind) in zip(names, fields, strict=True)]


def _list_repeated(schema: Json) -> list[str]:
    """List the numbered names of fields whose names repeat."""
    fields = list(named_fields(schema))
    counts = Counter(name.lower() for name, _ in fields)
    numbered = zip(_number_names(fields), fields, strict=True)
    return [name for (name, _), (own, _) in numbered if counts[own.lower()] > 1]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def plan_variables(
    has: Operator, wants: DescribedOperator, choices: ColumnChoices, refuse: Refuse, *, avro: bool = False
) -> tuple[tuple[StoreColumns, ...], tuple[PartComparison, ...]]:
    """Plan the variables of transformWithState: the stores that change, and what is known of each. Raises NoWay."""
    planner = FieldPlanner(choices, refuse)
    old = {variable.name: variable for variable in has.variables}
    new = {variable.name: variable for variable in list_variables(wants.properties)}
    sources = _match_variables(old, new, choices, refuse)
    described = {family.name: family for store in wants.stores for family in store.families}
    old_values = {family.name: family.value_schema for store in has.stores for family in store.column_families}
    stores, gone = [], [variable for name, variable in old.items() if name not in sources.values()]
    for store in has.stores:
        families: list[FamilyColumns] = []
        there = {family.name: family for family in store.column_families}
        for name, variable in new.items():
            source = sources[name]
            if source is None:
                continue
            _check_variable(old[source], variable, refuse)
            if avro and source == name:
                _check_avro(there[name], described[name], refuse)
                continue
            families += _plan_families(there, described, old[source], name, planner)
        if any(family.changes for family in families):
            families += [
                FamilyColumns(there[name], None)
                for variable in gone
                for name in _list_families(variable.name)
                if name in there
            ]
            stores.append(StoreColumns(store.name, store.key_schema, store.value_schema, families=tuple(families)))
    for number, name in enumerate(new):
        source = sources[name]
        if source is None:
            part = PartComparison(PartKind.VALUE, None, number, Knowledge.FROM_NOW_ON, f"variable {name} is new")
        else:
            renamed = "" if source == name else f", from {source}"
            by_spark = avro and described[name].value != old_values.get(name)
            evolved = ", whose fields Spark itself adds (NULL), removes and widens: start the query" * by_spark
            why = f"variable {name} keeps its rows{renamed}{evolved}; ckpt does not see how code uses them"
            part = PartComparison(PartKind.VALUE, number, number, Knowledge.UNKNOWN, why)
        planner.parts.append(part)
    for variable in gone:
        stays = "" if stores else ": its rows stay, and a query that declares it again finds them"
        why = f"variable {variable.name} is gone{stays}"
        planner.parts.append(PartComparison(PartKind.VALUE, 0, None, Knowledge.UNKNOWN, why))
    return tuple(stores), tuple(planner.parts)


def _check_avro(has: ColumnFamily, wants: DescribedFamily, refuse: Refuse) -> None:
    if not can_read_avro(wants.value, has.value_schema):
        types = f"{bare(wants.value)}, but {bare(has.value_schema)} in the state"
        raise refuse(f"variable {wants.name} is {types}: Avro does not read one as the other")


def _match_variables(
    old: Mapping[str, StateVariable], new: Mapping[str, StateVariable], choices: ColumnChoices, refuse: Refuse
) -> dict[str, str | None]:
    """Find the old name of each variable; None: it is new. Raises NoWay where one may have been renamed."""
    sources: dict[str, str | None] = {name: name if name in old else None for name in new}
    for name in new:
        source = choices.find_source(name)
        if source is not None:
            if source not in ("-", *old):
                raise refuse(f"{source} is not a variable in the state; it has {', '.join(old)}")
            sources[name] = None if source == "-" else source
    taken = [source for source in sources.values() if source is not None]
    if len(set(taken)) < len(taken):
        raise refuse("two variables would get the rows of the same one")
    for name, source in sources.items():
        if source is not None and name in old and source != name and name not in taken:
            raise refuse(f"variable {name} is in the state too, and would be lost: rename it as well")
        if source is not None or name in choices.mapped:
            continue
        rivals = [own.name for own in old.values() if own.name not in taken and own.kind == new[name].kind != TIMERS]
        if rivals:
            one_of, ask = " or ".join(rivals), ask_old("map_column", name, rivals[0])
            raise refuse(BOOK.text("evolve_which_variable", variable=name, rivals=one_of, asked=ask))
    return sources


def _check_variable(old: StateVariable, new: StateVariable, refuse: Refuse) -> None:
    if old.kind != new.kind:
        raise refuse(f"variable {new.name} is a {new.kind}, but a {old.kind} in the state")
    if old.ttl != new.ttl:
        has, had = ("a", "none") if new.ttl else ("no", "one")
        raise refuse(f"variable {new.name} has {has} time to live, but {had} in the state: the row layouts differ")


def _list_families(variable: str) -> list[str]:
    return [variable, *(f"{prefix}{variable}" for prefix in _COMPANIONS)]


def _plan_families(
    there: Mapping[str, ColumnFamily],
    described: Mapping[str, DescribedFamily],
    old: StateVariable,
    name: str,
    planner: FieldPlanner,
) -> Iterator[FamilyColumns]:
    """Plan the families of a variable that is called ``name`` now. Raises NoWay."""
    for before, after in zip(_list_families(old.name), _list_families(name), strict=True):
        if before not in there or after not in described:
            continue
        has, wants = there[before], described[after]
        if has.evolved:
            raise planner.refuse(f"the schema of variable {old.name} has changed before: only Spark reads such state")
        if bare(has.key_schema) != bare(wants.key):
            types = f"{bare(wants.key)}, but {bare(has.key_schema)} in the state"
            raise planner.refuse(f"the key of variable {name} is {types}, and ckpt does not change such a key")
        value = planner.plan(has.value_schema, wants.value, name) if before == old.name else None
        schema = has.value_schema if value is None else wants.value
        several = before == old.name and old.kind == _LIST
        yield FamilyColumns(has, after, schema, value, is_list=several)
