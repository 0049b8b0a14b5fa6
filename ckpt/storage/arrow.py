"""Remote storage through pyarrow's own file systems: S3, Google Cloud, Azure, and Hadoop's libhdfs."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow
from pyarrow import fs

from ckpt.advice import Words, words
from ckpt.errors import UsageError
from ckpt.storage.base import FileInfo, temporary
from ckpt.storage.errors import shorten_error
from ckpt.storage.remote import Backend, ListedItem, convert_options, requests_at_once

Options = Mapping[str, str]

_TRIES = 3  # to read a file that is replaced meanwhile: nobody replaces one twice in a moment
# An HTTP status 416: Azure, S3 and Google Cloud have a code of their own for it.
_TOO_SHORT = re.compile(r"InvalidRange|\b416\b|RANGE_?NOT_?SATISFIABLE|OUT_?OF_?RANGE", re.I)


class ArrowBackend(Backend):
    """A folder of a ``pyarrow.fs.FileSystem``.

    A put to an object store shows the whole object at once, on Azure an empty one before it; pyarrow offers no
    conditional put, so whether the name is free is asked just before. HDFS gets a temporary file and a rename. After a
    removal pyarrow puts an empty object named like the folder (``offsets/``) into S3, which Hadoop's clients do too and
    take for a folder.
    """

    def __init__(self, file_system: fs.FileSystem, root: str, cure: str | Words, *, markers_only: bool = False) -> None:
        """Root a backend at a folder; ``cure`` is what usually helps where the file system refuses.

        ``markers_only``: listing one level shows only folders that have a marker object (Arrow's ``gcsfs.cc`` asks for
        objects and not for prefixes), so that folders have to be inferred.
        """
        self.cure = cure
        self._renames = file_system.type_name == "hdfs"
        self._copies = file_system.type_name == "abfs"
        self.whole_files = not self._renames
        self._markers_only = markers_only
        self.file_system = file_system
        self._root = root.rstrip("/")

    def level(self, folder: str) -> Iterable[ListedItem]:
        items = list(self._list(folder, recursive=False))
        if self._markers_only and not any(entry.file is None for entry in items):
            depth = folder.count("/") + 1 if folder else 0
            below = self._list(folder, recursive=True)
            deeper = {"/".join(entry.path.split("/")[: depth + 1]) for entry in below}
            items += [ListedItem(path, None) for path in deeper - {entry.path for entry in items}]
        return items

    def everything(self) -> Iterable[ListedItem]:
        """The whole tree: with object stores one request for each thousand objects."""
        return self._list("", recursive=True)

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """A range of a file: one request for its size, one for the bytes.

        Where a shorter file has replaced it in between, it is read again with the new size.
        """
        for tries_left in reversed(range(_TRIES)):
            with self.file_system.open_input_file(self.join(path)) as file:
                left = max(0, file.size() - offset)
                wanted = left if length is None else min(length, left)
                try:
                    data = bytes(file.read_at(wanted, offset)) if wanted else b""
                except OSError as error:
                    if not tries_left or not _TOO_SHORT.search(str(error)):
                        raise
                    continue
            if len(data) == wanted or not tries_left:
                break
        return data

    def _list(self, folder: str, *, recursive: bool) -> Iterable[ListedItem]:
        base = self.join(folder)
        try:
            infos = self.file_system.get_file_info(fs.FileSelector(base, recursive=recursive))
        except FileNotFoundError:
            if self.file_system.get_file_info(base).type == fs.FileType.File:
                raise NotADirectoryError(base) from None
            raise
        skip = len(self._root) + 1 if self._root else 0
        for item in infos:
            path = item.path[skip:].strip("/")
            if item.type == fs.FileType.Directory:
                yield ListedItem(path, None)
            elif item.type != fs.FileType.NotFound:
                yield ListedItem(path, FileInfo(item.size or 0, item.mtime_ns and item.mtime_ns // 1_000_000))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a whole file. A stream that is given up is closed, which shows what it has: that is deleted."""
        with suppress(FileNotFoundError):  # asked by opening it: S3 lists names too where its information is asked for
            self.file_system.open_input_file(self.join(path)).close()
            raise FileExistsError(path)
        try:
            self._write(path, pieces)
        except BaseException:
            with suppress(Exception):
                self.file_system.delete_file(self.join(self._place(path)))
            raise

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, over another one too; on HDFS pyarrow deletes that just before the rename.

        On Azure pyarrow empties a file before it writes to it: there a temporary one is copied over it, by the service.
        """
        if not self._copies:
            self._write(path, (data,))
            return
        unfinished = temporary(path)
        self._write(unfinished, (data,))
        self.file_system.copy_file(self.join(unfinished), self.join(path))
        self.file_system.delete_file(self.join(unfinished))

    def _write(self, path: str, pieces: Iterable[bytes]) -> None:
        with self.file_system.open_output_stream(self.join(self._place(path))) as file:
            for piece in pieces:
                file.write(piece)
        if self._renames:
            self.file_system.move(self.join(self._place(path)), self.join(path))

    def _place(self, path: str) -> str:
        """Where a file is written first."""
        return temporary(path) if self._renames else path

    def delete(self, path: str) -> None:
        if self.file_system.get_file_info(self.join(path)).type == fs.FileType.NotFound:
            raise FileNotFoundError(path)
        self.file_system.delete_file(self.join(path))

    def copy_from(self, source: str, path: str) -> None:
        self.file_system.copy_file(source, self.join(path))

    def remove_folder(self, path: str) -> None:
        if all(entry.file is None for entry in self._list(path, recursive=True)):
            self.file_system.delete_dir(self.join(path))

    def remove_tree(self, path: str) -> bool:
        self.file_system.delete_dir_contents(self.join(path), missing_dir_ok=True)
        return True

    def make_folder(self, path: str) -> None:
        if self._renames:
            self.file_system.create_dir(self.join(path))


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


# The options of pyarrow's file systems that have to do with reading, and how their text is understood.
S3_OPTIONS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("access_key", "secret_key", "session_token", "role_arn", "session_name"), str),
    **dict.fromkeys(("external_id", "region", "scheme", "endpoint_override"), str),
    **dict.fromkeys(("proxy_options", "tls_ca_file_path"), str),
    **dict.fromkeys(("anonymous", "force_virtual_addressing"), _flag),
    **dict.fromkeys(("request_timeout", "connect_timeout"), float),
    "load_frequency": int,
}
GCS_OPTIONS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("access_token", "target_service_account", "scheme", "endpoint_override", "project_id"), str),
    "credential_token_expiration": datetime.fromisoformat,
    "anonymous": _flag,
    "retry_time_limit": lambda text: timedelta(seconds=float(text)),
}
AZURE_OPTIONS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("account_name", "account_key", "sas_token", "client_id", "client_secret", "tenant_id"), str),
    **dict.fromkeys(("blob_storage_authority", "blob_storage_scheme"), str),
    **dict.fromkeys(("dfs_storage_authority", "dfs_storage_scheme"), str),
}


def s3(bucket: str, path: str, options: Options) -> ArrowBackend:
    """S3 and compatible storage. If no region is given, the bucket is asked (one request)."""
    values: dict[str, Any] = {"background_writes": False}  # or a large file would wait in memory to be sent
    if int(pyarrow.__version__.partition(".")[0]) >= 21:
        values["allow_delayed_open"] = True  # a small file is written in one request and not in three
    values |= convert_options("s3", options, S3_OPTIONS)
    if elsewhere := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        values.setdefault("endpoint_override", elsewhere)  # as Amazon's own tools do, and pyarrow does not
    endpoint = str(values.get("endpoint_override", ""))
    if "://" in endpoint:
        values["scheme"], _, values["endpoint_override"] = endpoint.partition("://")
    if not values.keys() & {"region", "endpoint_override"}:
        values["region"] = fs.resolve_s3_region(bucket)
    cure = words("give credentials (AWS_* variables, ~/.aws, {--storage-options} access_key=… secret_key=…)")
    return ArrowBackend(_make("s3", lambda: fs.S3FileSystem(**values)), f"{bucket}/{path}", cure)


def gcs(bucket: str, path: str, options: Options) -> ArrowBackend:
    """Google Cloud Storage; gives up after 10 s of retries unless set otherwise."""
    values: dict[str, Any] = {"retry_time_limit": timedelta(seconds=10), **convert_options("gs", options, GCS_OPTIONS)}
    if "access_token" in values:
        values.setdefault("credential_token_expiration", datetime.now(UTC) + timedelta(hours=1))
    cure = words("give credentials (gcloud, GOOGLE_APPLICATION_CREDENTIALS, {--storage-options} access_token=…)")
    file_system = _make("gs", lambda: fs.GcsFileSystem(**values))
    return ArrowBackend(file_system, f"{bucket}/{path}", cure, markers_only=True)


def azure(container: str, path: str, host: str, options: Options) -> ArrowBackend:
    """Azure Blob Storage and Data Lake; ``host`` is ``<account>.dfs.core.windows.net``, or empty."""
    values = convert_options("abfs", options, AZURE_OPTIONS)
    account, _, domain = host.partition(".")
    if account:
        values.setdefault("account_name", account)
    if domain:
        around = domain.partition(".")[2]
        values.setdefault("blob_storage_authority", f".blob.{around}")
        values.setdefault("dfs_storage_authority", f".dfs.{around}")
    if "account_name" not in values:
        raise UsageError.of(
            "the Azure account is missing: write abfss://container@account.dfs.core.windows.net/path or "
            "give {--storage-options} account_name=…"
        )
    cure = words("give credentials (az login, AZURE_* variables, {--storage-options} account_key=… or sas_token=…)")
    return ArrowBackend(_make("abfs", lambda: fs.AzureFileSystem(**values)), f"{container}/{path}", cure)


def libhdfs(scheme: str, host: str, port: int, user: str | None, path: str, options: Options) -> ArrowBackend:
    """HDFS through Hadoop's own client and a JVM inside this process; options are Hadoop's settings."""
    cure = "check HADOOP_CONF_DIR and the Kerberos ticket"
    name = f"{scheme}://{host}" if scheme != "hdfs" else host or "default"
    extra = dict(options) or None
    hadoop = _make(scheme, lambda: fs.HadoopFileSystem(name, port, user=user, extra_conf=extra))
    return ArrowBackend(hadoop, f"/{path}", cure)


def _make(scheme: str, construct: Callable[[], fs.FileSystem]) -> fs.FileSystem:
    """Construct a file system; what its constructor refuses is a wrong option."""
    # Arrow opens as many connections to S3 as it has threads for input and output: 8, and 25 at least.
    pyarrow.set_io_thread_count(max(pyarrow.io_thread_count(), requests_at_once()))
    try:
        return construct()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{scheme}:// does not accept these options: {shorten_error(error)}") from error
