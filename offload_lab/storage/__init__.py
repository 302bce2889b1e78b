"""Where optimizer state lies: RAM slabs and generations on disk."""
