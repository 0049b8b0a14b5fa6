"""Files of recorded answers: JSON that a version control system compares line by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Document = dict[str, Any]
"""The Spark version, when it was asked, and its answers by case."""


@dataclass(frozen=True)
class Folder:
    """A file for each Spark minor version, sorted, one answer a line."""

    path: Path
    key: str = "answers"
    compact: bool = False

    @property
    def minors(self) -> list[str]:
        """The versions that are recorded, oldest first."""
        return sorted(file.stem for file in self.path.glob("*.json"))

    def read_all(self) -> Document:
        """Return what each version answered."""
        return {minor: self.read(minor) for minor in self.minors}

    def read(self, minor: str) -> Document:
        """Return what one version answered; no answers if it was not asked."""
        file = self.path / f"{minor}.json"
        document: Document = json.loads(file.read_text()) if file.is_file() else {"spark": None, self.key: {}}
        return document

    def write(self, minor: str, document: Document) -> None:
        """Replace the file of a version."""
        head = {key: value for key, value in document.items() if key != self.key}
        how: dict[str, Any] = (
            {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")} if self.compact else {}
        )
        lines = (
            f"{json.dumps(name)}: {json.dumps(answer, **how)}" for name, answer in sorted(document[self.key].items())
        )
        text = json.dumps(head, sort_keys=True)[:-1] + f', "{self.key}": {{\n' + ",\n".join(lines) + "\n}}\n"
        _replace(self.path / f"{minor}.json", text)


@dataclass(frozen=True)
class OneFile:
    """One file for all Spark minor versions; ``layout`` writes it."""

    path: Path
    layout: Callable[[Document], str]
    key: str = "answers"

    @property
    def minors(self) -> list[str]:
        """The versions that are recorded, oldest first."""
        return sorted(self.read_all())

    def read_all(self) -> Document:
        """Return what each version answered."""
        document: Document = json.loads(self.path.read_text()) if self.path.is_file() else {}
        return document

    def read(self, minor: str) -> Document:
        """Return what one version answered; no answers if it was not asked."""
        document: Document = self.read_all().get(minor, {"spark": None, self.key: {}})
        return document

    def write(self, minor: str, document: Document) -> None:
        """Replace the answers of a version."""
        everything = {**self.read_all(), minor: document}
        _replace(self.path, self.layout(dict(sorted(everything.items()))) + "\n")


class OneVersion(OneFile):
    """A file of the one version that is asked."""

    def read_all(self) -> Document:
        document = super().read_all()
        return {document["spark"].rpartition(".")[0]: document} if document else {}

    def write(self, minor: str, document: Document) -> None:
        _replace(self.path, self.layout(document) + "\n")


def break_before(key: str, **how: Any) -> Callable[[Document], str]:
    """A layout with a line for each object that begins with a key."""
    return lambda document: json.dumps(document, **how).replace(f'{{"{key}"', f'\n{{"{key}"')


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_text(text)
    scratch.replace(path)
