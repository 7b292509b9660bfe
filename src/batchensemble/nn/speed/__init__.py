"""What saves work around layers; the layers are the same functions without it."""
