"""Pure folds from recorded events to rows."""
