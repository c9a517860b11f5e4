"""Failures that a person can mend."""


class UserError(Exception):
    """Something the user of a command must change; the message says what, in their words."""


class NameUnknown(UserError):
    """Nothing has the name that was given."""
