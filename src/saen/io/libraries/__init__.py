"""Graphs from and to other Python libraries, one module per library."""
