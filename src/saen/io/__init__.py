"""Everything that reads or writes: one module per format or library."""
