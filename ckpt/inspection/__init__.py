"""The verdict: everything ``ckpt inspect``, ``scan``, ``preflight`` and ``explain`` say, as values.

Checks for which no forecast is needed are in ``checks``. Nothing here plans a change.
"""
