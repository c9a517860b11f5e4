"""A PostgreSQL server of our own: started on first use, shared, stopped when nobody needs it."""
