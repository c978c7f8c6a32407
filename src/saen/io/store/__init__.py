"""The `.saen` format: what goes into a file, how it is packed, and folders of several files."""
