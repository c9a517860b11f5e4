"""Context scripts, carried out."""
