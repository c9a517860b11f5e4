"""Looks a log over: what is checked has a room each."""
