"""Whole jobs, from a dataset's name to a file: what the commands of the same names call.

Training and evaluation can be interrupted at any time and resumed by the same call, with the same
result as an undisturbed run.
"""
