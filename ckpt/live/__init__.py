"""What the sources of a query have now: ``ckpt inspect --sources``. It only asks, and for seconds only."""
