"""An operator who does exactly what ckpt prints: incidents of real queries, obeyed, started, and their rows counted."""
