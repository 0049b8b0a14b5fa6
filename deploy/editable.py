"""An editable install finds commands/ as ckpt_commands too: hatchling cannot rename a folder there by itself."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = """from pathlib import Path

__path__ = [{folder!r}]
exec(compile(Path(__path__[0], "__init__.py").read_text("utf-8"), __path__[0] + "/__init__.py", "exec"))
"""


class EditableCommands(BuildHookInterface[Any]):
    """Add a package ckpt_commands to an editable wheel, whose modules are those of commands/."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the package beside the wheel, and have it included."""
        if version == "editable":
            package = Path(self.directory) / "ckpt_commands.py"
            package.parent.mkdir(parents=True, exist_ok=True)
            package.write_text(_PACKAGE.format(folder=str(Path(self.root) / "commands")), encoding="utf-8")
            build_data["force_include_editable"][str(package)] = "ckpt_commands/__init__.py"
