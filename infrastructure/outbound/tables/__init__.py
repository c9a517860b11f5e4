"""The tables that are read and the tables of coordination, in PostgreSQL."""
