"""Every byte of the state that any batch needs (``ckpt state verify``, ``ckpt inspect --deep``)."""

from ckpt.state.verify.verify import Estimate, StateVerification, deep_checkpoint, verify_state

__all__ = ["Estimate", "StateVerification", "deep_checkpoint", "verify_state"]
