"""Let the next new batch begin elsewhere, by changing the end of the latest one (``ckpt offsets set``, ``import``)."""

from ckpt.changes.offsets.ends import Moved
from ckpt.changes.offsets.exchange import ImportPlan, document_of, export_offsets, import_offsets
from ckpt.changes.offsets.plan import OffsetsPlan
from ckpt.changes.offsets.set_offsets import set_offsets

__all__ = ["ImportPlan", "Moved", "OffsetsPlan", "document_of", "export_offsets", "import_offsets", "set_offsets"]
