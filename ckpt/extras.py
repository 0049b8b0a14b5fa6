"""Extras: what can be installed beside ckpt, and the command that does it for the way in which ckpt was installed."""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ckpt.texts import quote_word

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_DISTRIBUTION = "spark-ckpt"
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?[^;]*; extra == ['\"](\w+)['\"]")


def install_command(extra: str) -> str:
    """Write the command that adds an extra, for how ckpt was installed: ``pip install 'spark-ckpt[native]'``.

    pip notes where a distribution came from unless that was an index (``direct_url.json`` of PEP 610). A folder, a
    wheel or a repository is named again, since an index may not have it. Nothing can be added to a single file.
    """
    requirement = f"{_DISTRIBUTION}[{extra}]"
    if sys.argv and zipfile.is_zipfile(sys.argv[0]):
        return f"this ckpt is a single file that cannot be extended: install {quote_word(requirement)} instead"
    origin: dict[str, Any] = json.loads(_read_file("direct_url.json") or "{}")
    url = origin.get("url", "")
    words = [quote_word(f"{requirement} @ {url}" if url else requirement)]
    if "vcs_info" in origin:
        commit = origin["vcs_info"]
        words = [quote_word(f"{requirement} @ {commit['vcs']}+{url}@{commit['commit_id']}")]
    elif "dir_info" in origin:
        editable = ["-e"] if origin["dir_info"].get("editable") else []
        words = [*editable, quote_word(f"{unquote(urlsplit(url).path)}[{extra}]")]
    return " ".join([_install(), *words])


def _install() -> str:
    """Spell pip of this Python: the first on the PATH may install elsewhere, and uv leaves no pip behind."""
    if (_read_file("INSTALLER") or "").strip() == "uv":
        return f"uv pip install -p {quote_word(sys.executable)}"
    first = shutil.which("pip")
    own = first and Path(first).parent == Path(sys.executable).parent
    return "pip install" if own else f"{quote_word(sys.executable)} -m pip install"


def _read_file(name: str) -> str | None:
    distribution = _find_distribution(_DISTRIBUTION)
    return distribution.read_text(name) if distribution else None


def list_extras() -> dict[str, dict[str, str | None]]:
    """List each extra's own packages with the version that is installed, None where a package is not."""
    extras: dict[str, dict[str, str | None]] = {}
    distribution = _find_distribution(_DISTRIBUTION)
    for requirement in (distribution.requires if distribution else None) or []:
        if (parts := _REQUIREMENT.fullmatch(requirement)) and parts[1] != _DISTRIBUTION:
            extras.setdefault(parts[3], {})[parts[1]] = find_version(parts[1])
    return extras


def find_version(package: str) -> str | None:
    """Find the version of a distribution that is installed; None where it is not."""
    distribution = _find_distribution(package)
    return distribution.version if distribution else None


def _find_distribution(name: str) -> "Distribution | None":
    from importlib.metadata import Distribution, PackageNotFoundError  # not at the top: what lacks nothing needs none

    try:
        return Distribution.from_name(name)
    except PackageNotFoundError:
        return None
