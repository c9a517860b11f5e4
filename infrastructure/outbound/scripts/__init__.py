"""Runners of context scripts."""
