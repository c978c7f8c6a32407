"""Helpers that know nothing of saen: arrays, strings, atomic files, progress bars."""
