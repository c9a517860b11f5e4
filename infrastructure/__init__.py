"""Adapters of ports (`outbound`), interfaces for callers (`inbound`), composition root (`server`)."""
