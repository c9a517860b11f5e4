"""One session: a requester or a child, and the children it was granted."""
