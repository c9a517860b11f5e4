"""Query parameters that several endpoints take."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from application.queries.events import TYPES
from application.queries.paging import LIMIT_MAX
from domain.values.moments import DURATION_FORMS, MOMENT_CHARACTERS_MAX, MOMENT_FORMS

POSITION_MAX = 2**62
TEXT_CHARS_MAX = 2048
CURSOR_CHARS_MAX = 2048
TYPE_SCHEMA: dict[str, Any] = {"enum": sorted(TYPES)}
RUN_ID_SCHEMA: dict[str, Any] = {"format": "uuid", "minLength": 36, "maxLength": 36}
"""What `run_id_of` takes: told and not declared, for another text is the id of no run, and 404."""


ByCursor = Annotated[
    str | None,
    Query(max_length=CURSOR_CHARS_MAX, description="`nextCursor` of the page before this one."),
]
TypesParameter = Annotated[
    tuple[Annotated[str, Field(max_length=2000, json_schema_extra=TYPE_SCHEMA)], ...],
    Query(description="Of any of these types: one each time, or names by commas."),
]
RunParameter = Annotated[
    str | None,
    Query(
        alias="runId",
        max_length=64,
        description="Of this run only.",
        json_schema_extra=RUN_ID_SCHEMA,
    ),
]
TreeParameter = Annotated[
    str | None,
    Query(
        alias="tree",
        max_length=TEXT_CHARS_MAX,
        description="In the tree below this root session: a key, a session id, or `current`.",
    ),
]
ActorParameter = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=TEXT_CHARS_MAX,
        description=(
            "On the word of this actor: a kind (`token`, `child`, `anybody`, `system`), the id of a"
            " token, or the key of a session that acted."
        ),
    ),
]
FromParameter = Annotated[
    str | None,
    Query(
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Only what was recorded after this moment: {MOMENT_FORMS}. Default: all.",
        examples=["pos:0"],
    ),
]
ToParameter = Annotated[
    str | None,
    Query(
        alias="to",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"And not after this moment: {MOMENT_FORMS}. Default: now.",
        examples=["pos:18342"],
    ),
]
LimitParameter = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many items at most.")]
After = Annotated[
    int,
    Query(
        ge=0, le=POSITION_MAX, description="Only what stands behind this: `nextAfter` of a page."
    ),
]
MinPosition = Annotated[
    int | None,
    Query(
        ge=0,
        le=POSITION_MAX,
        description=(
            "Answer no earlier state than that of this position, which another server has told;"
            " 503 when it is not known here within a second."
        ),
    ),
]
AsOfParameter = Annotated[
    str | None,
    Query(
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"As of when: {MOMENT_FORMS}. A run is named by its id, 8 or more characters of its"
            " beginning, or its label. Default: now."
        ),
        examples=["pos:18342"],
    ),
]
Wait = Annotated[
    str | None,
    Query(
        max_length=16,
        description=f"How long to wait, 60 s at most: {DURATION_FORMS}.",
        examples=["30s"],
    ),
]
