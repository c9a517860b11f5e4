"""The rules: pure functions of recorded facts, and the events they speak in."""
