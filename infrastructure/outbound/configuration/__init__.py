"""Reading, checking and keeping the configuration file."""
