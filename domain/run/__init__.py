"""One run: one turn of one child session, from the request to the archive."""
