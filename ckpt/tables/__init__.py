"""SQL over checkpoints (``ckpt sql``): tables of logs, forecasts, findings and state, which DuckDB asks for.

DuckDB opens no file and no address: it is given Arrow by ckpt, and only of the tables that a statement names.
"""
