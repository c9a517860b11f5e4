"""The command line: commands for the HTTP API, and for starting and repairing a server."""
