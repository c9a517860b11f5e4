"""Query parameters that several endpoints take."""

from typing import Annotated

from fastapi import Query

from application.queries.as_of import AS_OF_CHARACTERS_MAX
from application.queries.paging import LIMIT_MAX

POSITION_MAX = 2**62
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
