"""The formats of files, one module each."""
