"""The code of a transformWithState query, as text: ``processor.py`` and ``start.py``. Pure; nothing here is run."""
