"""The code of a transformWithState query, as text: ``processor.py`` and ``start.py``. Pure; nothing here is run."""

from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.sources import seen_folder
from ckpt.migrate.generate.start import start_code, to_fill_in, too_many_for_code

__all__ = ["processor_code", "seen_folder", "start_code", "to_fill_in", "too_many_for_code"]
