"""Runtimes: a process for each run, and play-back."""
