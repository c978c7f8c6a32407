"""SAEN in PyTorch: shift, aggregate, extract, for many networks at once."""
