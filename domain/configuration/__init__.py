"""What a configuration file may say, and the pure questions that are asked of it."""
