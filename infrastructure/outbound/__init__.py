"""Adapters of the application's ports."""
