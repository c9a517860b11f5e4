"""The world: adapters of the ports (`outbound`), doors (`inbound`) and the one composition root."""
