"""Configuration models, and pure queries on them."""
