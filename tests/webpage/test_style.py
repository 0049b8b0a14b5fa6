"""The style of a part inside another page: the rules of a notebook for ``dt``, ``td`` or ``pre`` do not win."""

import re

from tests.support.places import ROOT


def test_every_rule_for_what_is_inside_weighs_more_than_those_of_a_notebook() -> None:
    """JupyterLab has rules of two or three classes (``.jp-OutputArea-output dt``), nbconvert floats every ``dt``."""
    style = (ROOT / "ckpt" / "webpage" / "style.css").read_text(encoding="utf-8")
    selectors = [
        selector for rule in re.findall(r"(?:^|[{}])([^{}@]+)\{", style) for selector in re.split(r",(?![^(]*\))", rule)
    ]
    assert len(selectors) > 40
    assert {selector.split()[0] for selector in selectors if " " in selector.strip()} == {":is(.ckpt,#ckpt)"}
