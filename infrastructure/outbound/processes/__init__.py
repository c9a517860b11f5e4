"""Programs run behind a gate: none of their processes outlives the holder that started them."""
