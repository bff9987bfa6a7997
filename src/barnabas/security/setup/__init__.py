"""What a secured cluster needs before its first start: keys, passwords, options, client files."""
