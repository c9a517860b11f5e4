"""References to free text.

Free text (tasks, outputs, prompts, results, errors) never stands in an event: it lives beside the
log, owned by a session, and an event refers to it. The keyed hash proves which text it was for as
long as the session's key exists; once the key is destroyed nothing can be guessed from the event.
"""

from uuid import UUID

from domain.values.record import Fact


class ContentRef(Fact):
    """Where a text is and what it must be.

    `bytes` is the length of its UTF-8 form, `hmac` the HMAC-SHA256 of that form under the owning
    session's key, in hexadecimal.
    """

    id: UUID
    bytes: int
    hmac: str
