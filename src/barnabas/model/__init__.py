"""Ids and errors: the words that every other part speaks."""
