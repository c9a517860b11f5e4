"""Search for breakpoints in the log."""
