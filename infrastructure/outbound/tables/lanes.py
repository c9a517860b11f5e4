"""Which lanes have somebody to be claimed, asked at every change of the log."""

from application.projections.fold import FOREVER

_CURRENT_ROW = f"lane IS NOT NULL AND to_position = {FOREVER}"
_SAME_LANE = f"lane = places.lane AND lane_depth = places.lane_depth AND to_position = {FOREVER}"
# From lane to lane along the index, and in each no farther than to whoever waits first: the cost
# must not grow with those who stand in line.
WAITING_LANES = (
    "WITH RECURSIVE places (lane, lane_depth) AS ("
    f" (SELECT lane, lane_depth FROM runs WHERE {_CURRENT_ROW} ORDER BY lane, lane_depth LIMIT 1)"
    " UNION ALL SELECT following.lane, following.lane_depth FROM places CROSS JOIN LATERAL"
    f" (SELECT lane, lane_depth FROM runs WHERE {_CURRENT_ROW}"
    " AND (lane, lane_depth) > (places.lane, places.lane_depth)"
    " ORDER BY lane, lane_depth LIMIT 1) AS following)"
    " SELECT lane, lane_depth FROM places WHERE"
    f" (SELECT count(holder) FROM (SELECT holder FROM runs WHERE {_SAME_LANE}"
    " ORDER BY queued_position LIMIT %s) AS foremost) < %s"
    f" AND EXISTS (SELECT FROM runs WHERE {_SAME_LANE} AND stage = 'queued' AND holder IS NULL)"
    " ORDER BY 1, 2"
)
"""Lane and depth; the values are the width of a lane, twice."""
