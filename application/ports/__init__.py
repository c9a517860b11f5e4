"""Ports: the interfaces through which use cases reach the outside, one topic a file."""
