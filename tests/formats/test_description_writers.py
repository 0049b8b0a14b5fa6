"""State schemas and operator metadata are written in the bytes in which Spark has written them."""

import pytest

from ckpt.formats.operators import format_operator_metadata, parse_operator_metadata
from ckpt.formats.schemas import format_state_schema, parse_state_schema
from ckpt.model import Unreadable
from tests.support.places import SAMPLES

SCHEMAS = sorted({*SAMPLES.glob("*/state/*/0/**/_metadata/schema"), *SAMPLES.glob("*/state/*/_stateSchema/*/[0-9]*")})


@pytest.mark.parametrize("version", [2, 3])
def test_a_schema_that_is_written_again_has_the_same_bytes(version: int) -> None:
    files = [path for path in SCHEMAS if path.read_bytes()[2:4] == f"v{version}".encode()]
    assert len(files) > 5
    for path in files:
        families = parse_state_schema(str(path), path.read_bytes())
        if not isinstance(families, Unreadable):
            assert format_state_schema(version, families) == path.read_bytes(), path


def test_operator_metadata_that_is_written_again_has_the_same_bytes() -> None:
    files = sorted(SAMPLES.glob("*/state/*/_metadata/metadata"))
    assert len(files) > 10
    for path in files:
        metadata = parse_operator_metadata(str(path), path.read_bytes())
        assert not isinstance(metadata, Unreadable)
        assert format_operator_metadata(metadata) == path.read_bytes(), path
