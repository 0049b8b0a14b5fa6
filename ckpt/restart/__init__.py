"""The next start: what each Spark version makes of a checkpoint, by rules, forecasts and diagnoses.

Pure functions of a ``Checkpoint``. What sources and sinks have now is in ``ckpt.live``.
"""
