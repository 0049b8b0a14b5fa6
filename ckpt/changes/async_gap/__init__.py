"""Out of the gaps that asynchronous progress tracking leaves: planned, backed up, undoable (``ckpt repair-async``)."""
