"""A run: one turn of one child session, from request to archive."""
