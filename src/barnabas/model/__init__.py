"""Ids and errors, shared by all other packages."""
