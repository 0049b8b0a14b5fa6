"""A new checkpoint with the state of another one, in another form (``ckpt rewrite``)."""

from ckpt.checkpoint.state.rewritable import Form
from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit
from ckpt.copies.rewrite.rewrite import rewrite_checkpoint

__all__ = ["Form", "Rewrite", "RewrittenUnit", "rewrite_checkpoint"]
