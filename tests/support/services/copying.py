"""Copy a local folder to wherever a service keeps its files."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import fs


def copy_tree(folder: Path, make_folder: Callable[[str], object], write: Callable[[str, bytes], object]) -> None:
    """Hand every empty folder to ``make_folder`` and every file to ``write``, many at once, by relative path."""

    def copy(path: Path) -> None:
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            write(name, path.read_bytes())
        elif not any(path.iterdir()):
            make_folder(name)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(copy, sorted(folder.rglob("*"))))


def copy_to_bucket(folder: Path, store: "fs.FileSystem", bucket: str, name: str) -> None:
    """Copy a local folder into a new bucket. Only empty folders get a marker object."""

    def write(path: str, content: bytes) -> None:
        with store.open_output_stream(f"{bucket}/{name}/{path}") as out:
            out.write(content)

    store.create_dir(bucket)
    copy_tree(folder, lambda path: store.create_dir(f"{bucket}/{name}/{path}"), write)
