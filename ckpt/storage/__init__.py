"""Where files are: local, S3, HDFS and others.

What is named here only reads. Writing is apart, in ``writer.py`` and what implements it, which few may import.
"""

from ckpt.storage.base import FileInfo, Folder, Listing, Oddity, ReadRequest, Root, Storage
from ckpt.storage.uri import open_storage

__all__ = ["FileInfo", "Folder", "Listing", "Oddity", "ReadRequest", "Root", "Storage", "open_storage"]
