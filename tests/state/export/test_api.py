"""What ``ckpt`` exports: all of it documented, with examples that run, and imported only when it is asked for."""

import doctest
import inspect
import subprocess
import sys
from types import FunctionType
from typing import Any

import pytest

import ckpt
from docs.generate.api import CALLS, api_page
from tests.support.places import ROOT

FUNCTIONS = [name for name in ckpt.__all__ if isinstance(getattr(ckpt, name), FunctionType)]
WITH_SPARK = [name for name in FUNCTIONS if name.startswith("read_") or name in ("describe_query", "rehearse")]


def run_examples(name: str, **names: Any) -> int:
    """How many lines of examples a function has; each of them has printed what its docstring says."""
    function = getattr(ckpt, name)
    found = doctest.DocTestFinder(recurse=False).find(function, name, globs={"ckpt": ckpt, **names})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for one in found:
        assert runner.run(one).failed == 0
    return sum(len(one.examples) for one in found)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in WITH_SPARK])
def test_examples_of_a_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    assert run_examples(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", WITH_SPARK)
def test_examples_of_a_function_that_asks_spark(name: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    assert run_examples(name, spark=spark)


@pytest.mark.parametrize("name", [*ckpt.__all__, *ckpt.types.__all__])
def test_everything_is_documented(name: str) -> None:
    found = getattr(ckpt if name in ckpt.__all__ else ckpt.types, name)
    assert inspect.getdoc(found)
    if name in FUNCTIONS:
        assert "Args:" in found.__doc__ or len(inspect.signature(found).parameters) == 1
        assert inspect.signature(found).return_annotation is not inspect.Signature.empty


def test_the_page_lists_everything() -> None:
    assert sorted(name for names in CALLS.values() for name in names) == ckpt.__all__
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == api_page(), "run make docs"


def test_importing_ckpt_imports_no_more_than_inspect_needs() -> None:
    code = (
        "import sys, ckpt; found = {name.partition('.')[0] for name in sys.modules};"
        "print(*sorted(found & {'pyspark', 'py4j', 'pandas', 'typer', 'delta'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_the_name_of_a_type_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"it is ckpt\.types\.ExportRequest$"):
        getattr(ckpt, "ExportRequest")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        ckpt.nothing  # type: ignore[attr-defined]  # noqa: B018
