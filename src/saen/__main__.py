"""`python -m saen` is the command line."""

from saen.cli import main

main()
