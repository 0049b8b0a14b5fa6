"""Let the next new batch begin elsewhere, by changing the end of the latest one (``ckpt offsets set``, ``import``)."""

from ckpt.ways.offsets.ends import Moved
from ckpt.ways.offsets.exchange import ImportPlan, document_of, export_offsets, import_offsets
from ckpt.ways.offsets.perform import set_offsets
from ckpt.ways.offsets.plan import OffsetsPlan

__all__ = ["ImportPlan", "Moved", "OffsetsPlan", "document_of", "export_offsets", "import_offsets", "set_offsets"]
