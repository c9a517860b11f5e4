"""Embedded PostgreSQL server: started on first use, shared by processes, stopped after the last
use."""
