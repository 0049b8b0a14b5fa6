"""The code of a transformWithState query, as text: ``processor.py`` and ``start.py``. Pure; nothing here is run."""

from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import start_code, to_fill_in

__all__ = ["processor_code", "start_code", "to_fill_in"]
