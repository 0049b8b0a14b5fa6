"""``python -m ckpt``: the same application as the ``ckpt`` script, found where the script finds it."""

import sys

if sys.path[0] == __file__.rpartition("/")[0]:
    del sys.path[0]  # under spark-submit, where ckpt/types.py would hide the module types of Python

from importlib.metadata import entry_points

(script,) = entry_points(group="console_scripts", name="ckpt")
script.load()()
