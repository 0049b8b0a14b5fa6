"""Emulators of Google Cloud Storage and Azure Blob Storage, which pyarrow's own file systems talk to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.services.copying import copy_to_bucket
from tests.support.services.process import free_port, listening, pip_installed, prepared, running

if TYPE_CHECKING:
    from pyarrow import fs

_GCS = "gcp-storage-emulator>=2024.8"
_AZURITE = "azurite@^3.35"
_ACCOUNT = "devstoreaccount1"
# Azurite's published key for its one account: no secret.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Cloud:
    """A running emulator: how to reach it, how to write to it, and how its URIs are made."""

    options: dict[str, str]
    file_system: Callable[[], "fs.FileSystem"]
    uri: Callable[[str, str], str]
    _numbers: Iterator[int]

    def upload(self, folder: Path, name: str = "check point") -> str:
        """Copy a local folder into a new bucket; its URI."""
        bucket = f"bucket-{next(self._numbers)}"
        copy_to_bucket(folder, self.file_system(), bucket, name)
        return self.uri(bucket, name)


@contextmanager
def google_cloud(folder: Path) -> Iterator[Cloud]:
    """Start an emulator of Google Cloud Storage. Raises Unavailable."""
    port, program = free_port(), pip_installed("gcs", _GCS) / "bin" / "gcp-storage-emulator"
    command: list[str | Path] = [program, "start", "--in-memory", "--host=127.0.0.1", f"--port={port}"]
    options = {"endpoint_override": f"127.0.0.1:{port}", "scheme": "http", "anonymous": "true"}

    def file_system() -> "fs.FileSystem":
        from pyarrow import fs

        return fs.GcsFileSystem(**{**options, "anonymous": True}, project_id="ckpt")

    with running(command, folder, lambda: listening(port)):
        yield Cloud(options, file_system, "gs://{}/{}".format, count())


@contextmanager
def azure(folder: Path) -> Iterator[Cloud]:
    """Start Azurite, Microsoft's emulator of Blob Storage, which npm brings. Raises Unavailable.

    It keeps idle connections for longer than a test run: Arrow's client takes seconds to notice that one was closed.
    """
    home = prepared("azurite", ["npm", "install", "--no-audit", "--no-fund", "--prefix", "{}", _AZURITE])
    port = free_port()
    command: list[str | Path] = [home / "node_modules" / ".bin" / "azurite-blob", "--skipApiVersionCheck"]
    command += ["--inMemoryPersistence", "--disableTelemetry", "--blobKeepAliveTimeout", "3600"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    options = {
        "account_key": _KEY,
        "blob_storage_authority": f"127.0.0.1:{port}",
        "blob_storage_scheme": "http",
        "dfs_storage_authority": f"127.0.0.1:{port}",
        "dfs_storage_scheme": "http",
    }

    def file_system() -> "fs.FileSystem":
        from pyarrow import fs

        return fs.AzureFileSystem(_ACCOUNT, **options)

    with running(command, folder, lambda: listening(port)):
        yield Cloud(options, file_system, f"abfss://{{}}@{_ACCOUNT}.dfs.core.windows.net/{{}}".format, count())
