"""``python -m ckpt``: the same application as the ``ckpt`` script, found where the script finds it."""

from importlib.metadata import entry_points

(script,) = entry_points(group="console_scripts", name="ckpt")
script.load()()
