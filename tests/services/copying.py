"""Copy a local folder to wherever a service keeps its files."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


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
