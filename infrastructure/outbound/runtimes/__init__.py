"""Runtimes: command, model and scripted."""
