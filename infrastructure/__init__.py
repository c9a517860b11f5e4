"""Adapters of ports (`outbound`), interfaces for callers (`inbound`), and the composition root."""
