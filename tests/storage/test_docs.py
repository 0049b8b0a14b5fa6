"""``docs/storage.md`` and the code name the same options."""

import re

import pytest

from ckpt.storage.arrow import AZURE_OPTIONS, GCS_OPTIONS, S3_OPTIONS
from ckpt.storage.remote import PATIENCE, REQUESTS_AT_ONCE
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "storage.md").read_text()


@pytest.mark.parametrize(("scheme", "known"), [("s3", S3_OPTIONS), ("gs", GCS_OPTIONS), ("abfs", AZURE_OPTIONS)])
def test_the_page_has_every_option_and_no_other(scheme, known):
    (row,) = re.findall(rf"^\| `{scheme}` \| (.*) \|$", PAGE, re.M)

    assert set(re.findall(r"`(\w+)`", row)) == set(known)


def test_the_page_has_the_limits_of_the_code():
    assert f"{REQUESTS_AT_ONCE} reads are under way at once" in PAGE
    assert f"answered the first request in {PATIENCE} s" in PAGE
