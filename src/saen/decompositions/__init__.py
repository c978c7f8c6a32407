"""decompositions."""
