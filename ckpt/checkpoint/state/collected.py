"""Everything that was found out about state, before it is put together."""

from collections.abc import Mapping
from dataclasses import dataclass

from ckpt.checkpoint.state.context import Context
from ckpt.checkpoint.state.descriptions import Description
from ckpt.checkpoint.state.file_ends import NOTHING, Verified
from ckpt.checkpoint.state.folders import OperatorFolder, StorePartition
from ckpt.checkpoint.state.load import Loads
from ckpt.storage.base import Listing


@dataclass(frozen=True, slots=True)
class CollectedState:
    """Everything read for the state: listing, logs, small files, and the verdicts on the files to be loaded."""

    listing: Listing
    context: Context
    folders: tuple[OperatorFolder, ...]
    described: Mapping[int, Description]  # by operator
    loads: Loads
    oldest_zips: Mapping[StorePartition, int]  # their bytes, as far as they were read
    uri: str  # where the checkpoint is now
    seen: Verified = NOTHING  # in files of which every byte was read
