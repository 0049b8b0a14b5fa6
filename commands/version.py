"""The page of ``ckpt --version -v``: all that a bug report needs, and nothing secret."""

import platform
import subprocess

import ckpt
from ckpt.extras import find_version, list_extras

_REQUIRED = ("pyarrow", "tabulate", "typer")


def describe() -> str:
    """Describe this installation: versions of ckpt, Python, packages and Java, a line each."""
    lines = {
        "ckpt": ckpt.__version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Java": _describe_java(),
    }
    lines |= {package: find_version(package) or "not installed" for package in _REQUIRED}
    lines |= {
        f"extra {extra}": ", ".join(
            f"{package} {version or '(not installed)'}" for package, version in packages.items()
        )
        for extra, packages in list_extras().items()
    }
    return "\n".join(f"{name:<16}{value}" for name, value in lines.items())


def _describe_java() -> str:
    from ckpt.spark.installed import ask_java_version, find_java

    java = find_java()
    try:
        return ask_java_version(java) or "does not say its version" if java else "not installed"
    except (OSError, subprocess.TimeoutExpired):
        return "does not run"
