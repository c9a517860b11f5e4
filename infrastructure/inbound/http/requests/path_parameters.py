"""Path parameters of operations, by their names in the path templates."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from application.queries.run_filter import RUN_ID_SCHEMA
from infrastructure.inbound.http.responses.path_encoding import restore_slashes

SESSION_KEY_CHARS_MAX = 512
REVISION_MAX = 2**31 - 1

PATH_PARAMETERS: Mapping[str, Any] = {
    # Any text is accepted: one that is not an id is answered with 404.
    "runId": Annotated[str, Field(description="Run id.", json_schema_extra=RUN_ID_SCHEMA)],
    "id": Annotated[
        str,
        Field(
            description="Announcement id, which is the id of its run.",
            json_schema_extra=RUN_ID_SCHEMA,
        ),
    ],
    "key": Annotated[
        str,
        Field(
            max_length=SESSION_KEY_CHARS_MAX,
            description=(
                "Session key in any spelling, session id, or `current` for the session that the"
                " token acts for. Write a slash as `%2F`."
            ),
        ),
        AfterValidator(restore_slashes),
    ],
    "revision": Annotated[
        int, Field(ge=1, le=REVISION_MAX, description="Revision number, from 1.")
    ],
}
