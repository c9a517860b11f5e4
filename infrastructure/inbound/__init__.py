"""Interfaces for callers."""
