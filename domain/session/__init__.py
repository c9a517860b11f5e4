"""A session: a requester or a child, and the children admitted for it."""
