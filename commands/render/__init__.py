"""Result to text: pure functions; nothing here reads or prints."""
