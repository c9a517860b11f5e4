"""The command line: a door that speaks to the HTTP API, and starts or mends a server."""
