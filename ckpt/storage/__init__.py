"""The door to wherever a checkpoint lies: read only, local or remote."""

from ckpt.storage.base import FileInfo, Folder, Listing, Oddity, ReadRequest, Storage
from ckpt.storage.uri import open_storage

__all__ = ["FileInfo", "Folder", "Listing", "Oddity", "ReadRequest", "Storage", "open_storage"]
