"""What the use cases need of the world, one port a file."""
