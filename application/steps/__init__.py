"""What is made for a child outside the log, one module a step."""
