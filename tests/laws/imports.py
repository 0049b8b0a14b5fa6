"""``python -m tests.laws.imports``: write the list of modules that a plain ``ckpt inspect`` imports.

Importing is most of what a look at a small checkpoint costs, so the list is kept, and growth is seen in review.
"""

import subprocess
import sys

from tests.support.places import ROOT, SAMPLES

LIST = ROOT / "tests" / "laws" / "imports.txt"
_RUN = """
import atexit, sys
from commands.main import app
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
app(["inspect", sys.argv[1]])
"""


def imported() -> list[str]:
    """Modules of ckpt, and packages of others, that looking at a stateless and at a stateful checkpoint imports."""
    names: set[str] = set()
    for sample in ("stateless-4.2", "aggregation-hdfs-4.2"):
        words = [sys.executable, "-c", _RUN, str(SAMPLES / sample)]
        run = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        assert run.returncode in (0, 1), run.stderr
        names |= set(run.stderr.split())
    ours = {name for name in names if name.partition(".")[0] in ("ckpt", "commands")}
    packages = {name.partition(".")[0] for name in names - ours} - sys.stdlib_module_names
    return [*sorted(name for name in packages if not name.startswith("_")), *sorted(ours)]


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in imported()))
