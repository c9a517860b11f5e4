"""The use cases, and the ports through which they reach the world."""
