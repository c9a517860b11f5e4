"""Pure folds from recorded events to the rows that are read."""
