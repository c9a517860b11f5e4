"""Breakpoints on the record: since when something is so."""
