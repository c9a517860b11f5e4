"""Steps of a preparation that act outside the log, one module per step."""
