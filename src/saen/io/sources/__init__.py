"""Where named data come from: the catalog and its downloads, and data that are generated."""
