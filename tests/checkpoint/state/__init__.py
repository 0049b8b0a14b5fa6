"""The state half of inspecting: folders, chains, ends, damage."""
