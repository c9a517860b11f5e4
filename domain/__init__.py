"""Domain rules as pure functions of recorded facts, and the event types."""
