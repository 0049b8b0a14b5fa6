"""Judge the state that the next start loads, file by file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ckpt.checkpoint.state.chains import Chain, Context, WantedVersion, chain_to, fallbacks, read_lineages
from ckpt.checkpoint.state.descriptions import Description
from ckpt.checkpoint.state.file_ends import NOTHING, Verdict, Verified, compare_sizes, verify, written_there
from ckpt.checkpoint.state.folders import SSTS, OperatorFolder, StoreNames, StorePartition, find_snapshots_astray
from ckpt.checkpoint.state.loaded_files import Allowance, count_unread, read_loaded
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.statefiles import CHECKSUM
from ckpt.model import DamageKind, NotRead, RocksDBSnapshot, StateDamage, StateFile, StateFileKind
from ckpt.storage.base import Listing
from ckpt.texts import name_files

_HARMLESS = (DamageKind.VERSION_1, DamageKind.CHECKSUM_DIFFERS)


class Load(NamedTuple):
    """One store in one partition, and what Spark reads to load it."""

    place: StorePartition
    target: WantedVersion
    chain: Chain
    damages: tuple[StateDamage, ...]
    num_keys: int | None  # where a zip of exactly this version records it
    snapshot_bytes: int | None = None  # of a zip that was read, and of the files that it names

    @property
    def usable(self) -> StoreNames:
        """The names in the store's folder, without those of files that were seen to be damaged."""
        serious = list(filter(_is_serious, self.damages))
        if not serious:
            return self.place.names
        bad = {damage.path.rpartition("/")[2] for damage in serious}
        if self.chain.snapshot is not None and any(damage.file_kind is StateFileKind.SST for damage in serious):
            bad.add(self.place.names.snapshots[self.chain.snapshot])
        return self.place.names.without(bad)

    @property
    def replayed(self) -> int | None:
        """How many deltas or changelogs are replayed; None where the load cannot succeed."""
        return len(self.chain.logs) if self.chain.complete else None


class CollectedState(NamedTuple):
    """Everything read for the state: listing, logs, small files, and the verdicts on the files to be loaded."""

    listing: Listing
    context: Context
    folders: tuple[OperatorFolder, ...]
    described: Mapping[int, Description]  # by operator
    loads: Mapping[StorePartition, Load]
    oldest_zips: Mapping[StorePartition, int]  # their bytes, as far as they were read
    uri: str  # where the checkpoint is now
    seen: Verified = NOTHING  # verdicts on files that were read completely
    deep: bool = False  # these are all files
    not_read: NotRead = NotRead(0, 0)

    @property
    def snapshots(self) -> Mapping[str, RocksDBSnapshot]:
        """The contents of all zips by path; none where not all were read."""
        return self.seen.snapshots if self.deep else {}


def load_stores(
    listing: Listing,
    targets: Mapping[StorePartition, WantedVersion],
    codec: str,
    most_tails: int,
    allowance: Allowance | None = None,
    *,
    whole_files: bool = False,
) -> Step[tuple[tuple[Load, ...], NotRead]]:
    """Find the files of every store in every partition, and check the ends of ``most_tails`` of them at most.

    Files are read completely as far as the ``allowance`` goes, which has what is known of those that were. With
    ``whole_files`` the ends of logs that Spark wrote there itself are not read.
    """
    allowance = allowance or Allowance()
    lineages = yield from read_lineages(targets, codec)
    known: dict[tuple[StoreNames, WantedVersion], Chain] = {}
    chains: dict[StorePartition, Chain] = {}
    for store, target in targets.items():
        key = (store.names, target)
        if key not in known:
            known[key] = chain_to(store.names, target, lineages.get(store))
        chains[store] = known[key]
    files = (file for file in _order_files(chains) if not (whole_files and written_there(listing, file)))
    looked_at = list(islice(files, most_tails))
    ends = {file.path for file in looked_at}
    yield from read_loaded(listing, _order_files(chains), codec, allowance, ends)
    verified = yield from verify(looked_at, codec, allowance.verified)
    unsaid = verified.unknown - allowance.verified.files.keys()
    unread = (file for file in looked_at if file.path in unsaid)
    verified = yield from compare_sizes([file for file in unread if listing.info(file.path + CHECKSUM)], verified)
    drafts = [_check(listing, store, targets[store], chain, verified) for store, chain in chains.items()]
    damaged = [load for load in drafts if load.damages]
    rescued, more = yield from _find_rescued(listing, damaged, codec, allowance)
    loads = tuple(_mark_fallback(load, rescued[load.place]) if load.place in rescued else load for load in drafts)
    sizes = dict(_list_sizes((*chains.items(), *more)))
    return loads, count_unread(listing, sizes, verified.with_all(allowance.verified))


def _list_sizes(chains: Iterable[tuple[StorePartition, Chain]]) -> Iterator[tuple[str, int]]:
    """The paths of all files of complete chains, and their sizes: with a hole a load fails whatever they hold."""
    for store, chain in ((store, chain) for store, chain in chains if chain.complete):
        names = [store.names.logs[log] for log in chain.logs]
        if chain.snapshot is not None:
            names.append(store.names.snapshots[chain.snapshot])
        yield from ((f"{store.folder}/{name}", store.files[name].size) for name in names)


def _order_files(chains: Mapping[StorePartition, Chain]) -> Iterator[StateFile]:
    """All files of all chains: first the newest log of each, the one that a crash cuts off, then the snapshots."""
    for store, chain in chains.items():
        if chain.logs:
            yield store.log(chain.logs[-1])
    for store, chain in chains.items():
        if chain.snapshot is not None:
            yield store.snapshot(chain.snapshot)
    for store, chain in chains.items():
        yield from map(store.log, (*chain.logs[:-1], *chain.after))


def _find_rescued(
    listing: Listing, loads: list[Load], codec: str, allowance: Allowance
) -> Step[tuple[dict[StorePartition, bool], list[tuple[StorePartition, Chain]]]]:
    """Find loads whose only problem is a snapshot that an older one and its logs replace; True where all are intact.

    The others among them have every log, from the first one on. Also returns the chains that a start may fall back to.
    """
    options: dict[StorePartition, list[Chain]] = {}
    targets = {load.place: load.target for load in loads}
    for load in loads:
        serious = list(filter(_is_serious, load.damages))
        if serious and all(map(_is_of_snapshot, serious)):
            options[load.place] = fallbacks(load.place.names, load.target, load.chain)
    ways = [(store, chain) for store, chains in options.items() for chain in chains]
    files = {file.path: file for store, chain in ways for file in _order_files({store: chain})}
    if not files:
        return {}, ways
    yield from read_loaded(listing, files.values(), codec, allowance, files)
    verified = yield from verify(files.values(), codec, allowance.verified)
    rescued: dict[StorePartition, bool] = {}
    for store, chains in options.items():
        checked = (_check(listing, store, targets[store], chain, verified) for chain in chains)
        intact = any(not any(map(_is_serious, load.damages)) for load in checked)
        if intact or any(chain.snapshot is None for chain in chains):
            rescued[store] = intact
    return rescued, ways


def _is_of_snapshot(damage: StateDamage) -> bool:
    return damage.file_kind in (StateFileKind.SNAPSHOT, StateFileKind.ZIP, StateFileKind.SST)


def _is_serious(damage: StateDamage) -> bool:
    return is_serious(damage.kind, checksummed=damage.checksummed)


def is_serious(kind: DamageKind, *, checksummed: bool) -> bool:
    """False for an odd end of a file without a checksum, and for a snapshot that only Spark 4.0 does not read."""
    return kind not in _HARMLESS and (kind is not DamageKind.ODD_END or checksummed)


def _mark_fallback(load: Load, intact: bool) -> Load:
    """Mark the damages of a load as ones that Spark can get round, or tries to with a log that is damaged too."""
    damages = tuple(
        replace(damage, fallback=intact and _is_of_snapshot(damage), all_logs=not intact) for damage in load.damages
    )
    return load._replace(damages=damages)


def _check(listing: Listing, store: StorePartition, target: WantedVersion, chain: Chain, verified: Verified) -> Load:
    """Put together what is wrong, in the order in which Spark comes to it."""
    damages = tuple(_find_damages(listing, store, target, chain, verified))
    snapshot = None if chain.snapshot is None else store.snapshot(chain.snapshot)
    recorded = None if snapshot is None else verified.snapshots.get(snapshot.path)
    if snapshot is None or recorded is None:
        return Load(store, target, chain, damages, None)
    num_keys = None if chain.logs or not chain.complete else recorded.num_keys
    return Load(store, target, chain, damages, num_keys, snapshot.size + recorded.bytes)


def _find_damages(
    listing: Listing, store: StorePartition, target: WantedVersion, chain: Chain, verified: Verified
) -> Iterator[StateDamage]:
    names = store.names
    if target.unique_id is None:  # otherwise Spark goes by the ids and lists nothing
        yield from _find_strays(store, target)
    if target.unique_id is None and chain.snapshot is None and names.in_format_2:
        yield from _find_ids_in_names(store, target)
    if chain.lost_snapshot is not None:
        version, unique_id = chain.lost_snapshot
        name = f"{version}_{unique_id}.{names.snapshot_kind}"
        detail = "the changelogs go back to this snapshot, but it is missing"
        yield _make_damage(store, target, Verdict(DamageKind.MISSING, detail), name, names.snapshot_kind)
    if chain.snapshot is not None:
        name = names.snapshots[chain.snapshot]
        yield from _find_file_damages(store, target, name, names.snapshot_kind, verified)
        recorded = verified.snapshots.get(f"{store.folder}/{name}")
        if recorded is not None:
            yield from _judge_snapshot_version(store, target, name, recorded)
            for sst, verdict in judge_ssts(listing, store, name, verified):
                yield _make_damage(store, target, verdict, f"{SSTS}/{sst}", StateFileKind.SST)
    for log in chain.logs if verified.wrong or names.checksums else ():
        yield from _find_file_damages(store, target, names.logs[log], names.log_kind, verified)
    if chain.missing:
        yield _describe_hole(store, target, chain)
    for log in chain.after:
        yield from _find_file_damages(store, target, names.logs[log], names.log_kind, verified)
    blocked = f"{target.version + 1}.{names.log_kind}"
    if target.unique_id is None and listing.has_folder(f"{store.folder}/{blocked}"):
        detail = f"a folder has the name of the version {target.version + 1} file, which is yet to be written"
        yield _make_damage(store, target, Verdict(DamageKind.BLOCKED, detail), blocked, names.log_kind)


def _judge_snapshot_version(
    store: StorePartition, target: WantedVersion, name: str, recorded: RocksDBSnapshot
) -> Iterator[StateDamage]:
    """A snapshot that only Spark 4.0 reads, or only later versions: in format 2 they disagree about its version."""
    if recorded.version == 2:
        verdict = Verdict(DamageKind.VERSION_2, "its metadata entry begins with v2, as Spark 4.0 writes it")
    elif target.unique_id is not None:
        verdict = Verdict(DamageKind.VERSION_1, "its metadata entry begins with v1, as Spark 4.1 and later write it")
    else:
        return
    yield _make_damage(store, target, verdict, name, StateFileKind.ZIP)


def _find_strays(store: StorePartition, target: WantedVersion) -> Iterator[StateDamage]:
    """Snapshots whose names are no versions: Spark makes a number of each name, and fails."""
    names = store.names
    strays = find_snapshots_astray(names)
    if strays:
        more = f"; {len(strays) - 1} more like it" if len(strays) > 1 else ""
        verdict = Verdict(DamageKind.STRAY, f"its name is not a version of the store{more}", "NumberFormatException")
        yield _make_damage(store, target, verdict, strays[0], names.snapshot_kind)


def _find_ids_in_names(store: StorePartition, target: WantedVersion) -> Iterator[StateDamage]:
    """Zips of format 2 where the commit names no unique ids: Spark takes their names for numbers."""
    zips = [name for (_, unique_id), name in store.names.snapshots.items() if unique_id is not None]
    if zips and store.names.snapshot_kind is StateFileKind.ZIP:
        detail = "its name has a unique id, as in format 2, but the previous batch's commit has none"
        verdict = Verdict(DamageKind.UNREADABLE, detail, "NumberFormatException")
        yield replace(_make_damage(store, target, verdict, min(zips), StateFileKind.ZIP), format_version=2)


def _find_file_damages(
    store: StorePartition, target: WantedVersion, name: str, kind: StateFileKind, verified: Verified
) -> Iterator[StateDamage]:
    verdict = verified.wrong.get(f"{store.folder}/{name}")
    if verdict is None and store.checksum_size(name) == 0:
        verdict = Verdict(DamageKind.ODD_END, f"the checksum file {name}{CHECKSUM} is empty")
    if verdict is not None:
        yield _make_damage(store, target, verdict, name, kind)


def judge_ssts(
    listing: Listing, store: StorePartition, zip_name: str, verified: Verified
) -> Iterator[tuple[str, Verdict]]:
    """SST files that a zip names, if it was read, and that are missing, not as long as it says, or damaged."""
    there, recorded = listing.in_folder(f"{store.folder}/{SSTS}"), verified.snapshots.get(f"{store.folder}/{zip_name}")
    for name, size in recorded.ssts if recorded else ():
        info = there.get(name)
        if info is None:
            yield name, Verdict(DamageKind.MISSING_SST, f"{zip_name} names it, but it is missing")
        elif info.size != size:
            kind = DamageKind.EMPTY if info.size == 0 else DamageKind.TRUNCATED
            yield name, Verdict(kind, f"{info.size} bytes, but {zip_name} records {size}")
        elif (verdict := verified.wrong.get(f"{store.folder}/{SSTS}/{name}")) is not None:
            yield name, verdict


def _describe_hole(store: StorePartition, target: WantedVersion, chain: Chain) -> StateDamage:
    """The logs that are not there; where a store keeps no changelogs it is its snapshot that is missing."""
    names, missing, holes, kind = store.names, chain.missing, chain.holes, store.names.log_kind
    if kind is StateFileKind.CHANGELOG and not names.logs:
        kind, missing, holes = names.snapshot_kind, (target,), 1
    stems = (str(version) if unique_id is None else f"{version}_{unique_id}" for version, unique_id in missing)
    files = [f"{stem}.{kind}" for stem in stems]
    what = "it" if holes == 1 else name_files(files, holes)
    verdict = Verdict(DamageKind.MISSING, f"version {target.version} cannot be loaded without {what}")
    damage = _make_damage(store, target, verdict, files[0], kind)
    return replace(damage, missing=tuple(f"{store.folder}/{name}" for name in files[1:]))


def _make_damage(
    store: StorePartition, target: WantedVersion, verdict: Verdict, name: str, kind: StateFileKind
) -> StateDamage:
    return StateDamage(
        kind=verdict.kind,
        operator=store.operator,
        store=store.store,
        partition=store.partition,
        version=target.version,
        path=f"{store.folder}/{name}",
        file_kind=kind,
        detail=verdict.detail,
        changelog=store.names.log_kind is StateFileKind.CHANGELOG and bool(store.names.logs),
        checksummed=store.checksum_size(name) is not None,
        format_version=1 if target.unique_id is None else 2,
        says=verdict.says,
    )
