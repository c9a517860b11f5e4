"""Doors: ways in for callers."""
