"""From an old query to a new one with a checkpoint of its own, not a row lost or read twice (``ckpt handoff``)."""
