"""The SBOM (PEP 770) and the completions for three shells that are in the wheel."""

import json
import re
import tomllib
from typing import Any

from typer._completion_shared import get_completion_script

import ckpt

from .places import ROOT

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?(.*)")


def shipped_files() -> dict[str, str]:
    """The text of each file by its path below ``deploy/``."""
    shells = {"bash": "ckpt", "zsh": "_ckpt", "fish": "ckpt.fish"}
    completions = {
        f"completions/{name}": get_completion_script(prog_name="ckpt", complete_var="_CKPT_COMPLETE", shell=shell)
        + "\n"
        for shell, name in shells.items()
    }
    return completions | {"sbom/spark-ckpt.cdx.json": json.dumps(_bill_of_materials(), indent=2) + "\n"}


def _completion(shell: str) -> str:
    return get_completion_script(prog_name="ckpt", complete_var="_CKPT_COMPLETE", shell=shell) + "\n"


def _bill_of_materials() -> dict[str, Any]:
    """A CycloneDX document: the wheel bundles nothing, so that its components are what it asks an installer for.

    It has neither a serial number nor a time, so that two builds have the same bytes.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked: dict[str, dict[str, list[str]]] = {}
    for extra, requirements in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        for requirement in requirements:
            if (parts := _REQUIREMENT.fullmatch(requirement)) and parts[1] != project["name"]:
                asked.setdefault(parts[1], {}).setdefault(parts[2], []).append(extra)
    root = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{project['name']}@{ckpt.__version__}",
        "name": project["name"],
        "version": ckpt.__version__,
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": f"pkg:pypi/{project['name']}@{ckpt.__version__}",
    }
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{package}",
            "name": package,
            "scope": "required" if any("" in extras for extras in ranges.values()) else "optional",
            "purl": f"pkg:pypi/{package}",
            "properties": [
                {"name": f"spark-ckpt:range{f':{extra}' if extra else ''}", "value": versions}
                for versions, extras in ranges.items()
                for extra in extras
            ],
        }
        for package, ranges in sorted(asked.items())
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]}],
    }
