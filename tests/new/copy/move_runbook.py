"""``docs/runbooks/move.md`` with the output of its commands as it is now: ``python -m tests.new.copy.move_runbook``.

The commands run on a bundled checkpoint between a real S3 server and Azurite. What differs from run to run (their
ports, and options that only an emulator needs) is shown as it would be without one.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from pyarrow import fs
from typer.testing import Result

import ckpt
from tests.support.cli import invoke
from tests.support.places import ROOT, SAMPLES
from tests.support.services.clouds import Cloud, azure
from tests.support.services.s3 import S3Server, s3_server

PAGE = ROOT / "docs" / "runbooks" / "move.md"
OLD = "s3a://warehouse/checkpoints/devices"
NEW = "abfss://checkpoints@companystreaming.dfs.core.windows.net/devices"
_KEY = "account_key=$AZURE_KEY"
_BLOCK = re.compile(r"```console\n\$ ckpt (?P<words>[^\n]*)\n.*?```", re.S)
_EMULATOR = re.compile(r" --(to-)?storage-options '?(blob|dfs)_storage_\w+=\S+")
_AGE = re.compile(r"file is \d+ s old")
_ACCOUNTS = ("companystreaming", "devstoreaccount1")  # of one length, so that lines are folded at one place


def find_commands() -> list[list[str]]:
    """The words of the commands of the page, in their order; between any two storages, once places are replaced."""
    return [shlex.split(block["words"]) for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


@dataclass(frozen=True)
class Place:
    """Where a checkpoint is, or is to be, and the storage options that reach it."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    def words(self, option: str = "--storage-options") -> list[str]:
        """The options as words of a command."""
        return [word for pair in self.options.items() for word in (option, "=".join(pair))]


def run(words: Sequence[str], old: Place, new: Place) -> Result:
    """Run a command of the page between two places, which need not be those of the page."""
    made: list[str] = []
    for word in words:
        if word == OLD:
            made += [old.uri, *old.words()]
        elif word == _KEY:
            made += new.words(made.pop())
        else:
            made.append(new.uri + word.removeprefix(NEW) if word.startswith(NEW) else word)
    return invoke(*made, *(("--grace", "0") if "--apply" in words else ()))


@contextmanager
def reaching(s3: S3Server) -> Iterator[None]:
    """Until the block ends the environment reaches S3, as that of a user does."""
    settings = {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{s3.port}", "AWS_DEFAULT_REGION": "us-east-1"}
    settings |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    with patch.dict(os.environ, settings):
        yield


def page(s3: S3Server, cloud: Cloud) -> str:
    """Run the commands in their order, on the sample that the page names."""

    def filled(block: re.Match[str]) -> str:
        result = run(shlex.split(block["words"]), Place(OLD), Place(NEW.replace(*_ACCOUNTS), cloud.options))
        output = _AGE.sub("file is 7 s old", _EMULATOR.sub("", result.stdout).replace(*_ACCOUNTS[::-1]))
        return f"```console\n$ ckpt {block['words']}\n{output.rstrip()}\n```"

    for files, bucket in ((s3.file_system(), "warehouse"), (cloud.file_system(), "checkpoints")):
        files.create_dir(bucket)
    with reaching(s3):
        ckpt.copy(SAMPLES / "tws-rocksdb-4.2", OLD)
        for path, data in read_files(s3.file_system(), OLD.removeprefix("s3a://")):
            with cloud.file_system().open_output_stream(f"checkpoints/devices-by-hand/{path}") as out:
                out.write(data)
        return _BLOCK.sub(filled, PAGE.read_text(encoding="utf-8"))


def read_files(store: fs.FileSystem, folder: str) -> Iterator[tuple[str, bytes]]:
    """Read every file of a folder, as a tool does that copies all and changes none."""
    for info in store.get_file_info(fs.FileSelector(folder, recursive=True)):
        if info.is_file:
            yield info.path.removeprefix(f"{folder}/"), store.open_input_stream(info.path).read()


def write() -> None:
    """Rewrite the page."""
    with TemporaryDirectory() as scratch, ExitStack() as services:
        s3 = services.enter_context(s3_server(Path(scratch)))
        PAGE.write_text(page(s3, services.enter_context(azure(Path(scratch)))), encoding="utf-8")


if __name__ == "__main__":
    write()
