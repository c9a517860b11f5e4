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
    "runId": Annotated[str, Field(description="The run's id.", json_schema_extra=RUN_ID_SCHEMA)],
    "id": Annotated[
        str,
        Field(
            description="The announcement's id: that of its run.", json_schema_extra=RUN_ID_SCHEMA
        ),
    ],
    "key": Annotated[
        str,
        Field(
            max_length=SESSION_KEY_CHARS_MAX,
            description=(
                "The session's key in any spelling, its id, or `current` for the one session that"
                " the token acts for. A slash in it goes as `%2F`."
            ),
        ),
        AfterValidator(restore_slashes),
    ],
    "revision": Annotated[
        int, Field(ge=1, le=REVISION_MAX, description="The number of the revision, from 1.")
    ],
}
