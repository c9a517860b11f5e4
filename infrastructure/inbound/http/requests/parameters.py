"""Query parameters that several endpoints take."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from application.queries.as_of import AS_OF_CHARACTERS_MAX
from application.queries.events import TYPES
from application.queries.paging import LIMIT_MAX

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
        max_length=AS_OF_CHARACTERS_MAX,
        description="What is behind this: `pos:N` or an RFC 3339 instant; all when left out.",
        examples=["pos:0"],
    ),
]
ToParameter = Annotated[
    str | None,
    Query(
        alias="to",
        max_length=AS_OF_CHARACTERS_MAX,
        description="And not behind this: `pos:N` or an RFC 3339 instant; now when left out.",
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
        max_length=AS_OF_CHARACTERS_MAX,
        description=(
            "As of when: `pos:N`, an RFC 3339 instant, a time ago such as `-5m` (`s`, `m`, `h`,"
            " `d`), or a moment of a run, `run:<name>@<stage>`, by its id, 8 or more characters of"
            " its beginning, or its label; now when left out."
        ),
        examples=["pos:18342"],
    ),
]
Wait = Annotated[
    str | None,
    Query(
        max_length=16,
        description="How long to wait, 60 s at most: a time such as `30s`, `500ms` or `1m`.",
        examples=["30s"],
    ),
]
