"""A persistence module of the eventsourcing library: its applications on logs of our making."""
