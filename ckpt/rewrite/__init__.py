"""A new checkpoint with the state of another one, in another form (``ckpt rewrite``)."""

from ckpt.checkpoint.state.rewritable import Form
from ckpt.rewrite.perform import rewrite_checkpoint
from ckpt.rewrite.plan import Rewrite, RewrittenUnit

__all__ = ["Form", "Rewrite", "RewrittenUnit", "rewrite_checkpoint"]
