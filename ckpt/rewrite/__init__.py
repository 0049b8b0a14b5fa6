"""A new checkpoint with the state of another one, in another form (``ckpt rewrite``)."""

from ckpt.rewrite.perform import rewrite_checkpoint
from ckpt.rewrite.plan import Rewrite, RewrittenUnit
from ckpt.state.rewritable import Form

__all__ = ["Form", "Rewrite", "RewrittenUnit", "rewrite_checkpoint"]
