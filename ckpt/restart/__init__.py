"""What each Spark version makes of a checkpoint at the next start: rules, forecasts, and the diagnoses that follow.

Pure functions of a ``Checkpoint``. What sources and sinks have now is in ``ckpt.live``.
"""
