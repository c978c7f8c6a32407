"""Which parts of an input carried a prediction."""
