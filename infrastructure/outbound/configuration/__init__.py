"""Read, validate and store the configuration file."""
