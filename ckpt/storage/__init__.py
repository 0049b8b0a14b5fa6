"""The storage interface: reads a checkpoint, local or remote, and never writes."""

from ckpt.storage.base import FileInfo, Folder, Listing, Oddity, ReadRequest, Root, Storage
from ckpt.storage.uri import open_storage

__all__ = ["FileInfo", "Folder", "Listing", "Oddity", "ReadRequest", "Root", "Storage", "open_storage"]
