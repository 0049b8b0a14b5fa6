"""Names and docstrings that a stranger cannot guess: ``python -m tests.laws.names`` lists what is left of them.

Looked for in ``ckpt/`` and ``commands/``: docstrings that begin with a pronoun or a riddle, variables and parameters
called ``found``, ``one``, ``place`` and the like, and public class names that mean two things.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.support.places import ROOT

RIDDLE = re.compile(
    r"(The same|As of|Each of them|One by one|Th(?:ose|at|ese|is|ey|eir)|Its?|Some|All of|Whether|What|Which|So many)\b"
)
VAGUE = {"found", "one", "place", "some", "given", "seen", "told", "said", "asked"}
LISTED = {
    "ckpt/inspection/inspection.py:inspect:asked": "an argument of a public call",
    "ckpt/state/verify/verify.py:state_verify:told": "an argument of a public call",
}
"""Vague variables that stay, ``file:function:name``, each with the reason why nothing better exists."""


def riddles() -> Iterator[str]:
    """Docstrings that do not stand alone, as ``file:line: docstring``."""
    for path, tree in _modules():
        for node in ast.walk(tree):
            match node:  # docstrings of modules, classes and functions, and those below a variable
                case ast.Expr(ast.Constant(str(text))) if RIDDLE.match(text.strip()):
                    yield f"{path}:{node.lineno}: {text.strip().splitlines()[0]}"


def vague_names() -> Iterator[str]:
    """Variables and parameters without the name of their type or role, as ``file:function:name``, each once."""
    for path, tree in _modules():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
                names |= {
                    node.id
                    for node in ast.walk(function)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
                listed = {key.rpartition(":")[2] for key in LISTED if key.startswith(f"{path}:{function.name}:")}
                yield from (f"{path}:{function.name}:{name}" for name in sorted(names & VAGUE - listed))


def classes_named_twice() -> dict[str, list[str]]:
    """Public class names of more than one module, each with its modules."""
    modules = defaultdict(list)
    for path, tree in _modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path)
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}


def constants_assigned_twice() -> Iterator[str]:
    """List names that a module assigns twice: functions between the two would use the second value, too."""
    for path, module in _modules():
        assigned = (
            node.targets[0] if isinstance(node, ast.Assign) else node.target
            for node in module.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
        )
        counts = Counter(target.id for target in assigned if isinstance(target, ast.Name))
        yield from (f"{path}:{name}" for name, count in counts.items() if count > 1)


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("ckpt", "commands"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))


def _main(packages: list[str]) -> None:
    lines = [*riddles(), *vague_names(), *(f"{paths}: class {name}" for name, paths in classes_named_twice().items())]
    shown = [line for line in lines if not packages or any(package in line for package in packages)]
    sys.stdout.write("".join(f"{line}\n" for line in shown))
    if packages:
        return
    by_package = Counter("/".join(line.split(":")[0].split("/")[:3]) for line in lines)
    sys.stderr.write("".join(f"{count:5} {package}\n" for package, count in by_package.most_common()))


if __name__ == "__main__":
    _main(sys.argv[1:])
