"""Totals: durations in buckets, with label sets that callers cannot grow."""

from application.telemetry.totals import OTHER, ROUTES_MAX, DurationTotals, RequestTotals


def test_duration_is_in_its_first_bucket() -> None:
    totals = DurationTotals((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        totals.add(seconds)
    assert totals.up_to_bounds() == [(0.1, 2), (1.0, 3), (float("inf"), 4)]
    assert totals.count == 4
    assert totals.seconds == 7.65


def test_unknown_route_is_counted_as_other() -> None:
    totals = RequestTotals()
    for path in range(3):
        totals.take(f"METHOD{path}", None, 405, 0.1)
    totals.take("GET", "/healthz", 200, 0.1)
    assert totals.answers == {(OTHER, OTHER, 405): 3, ("GET", "/healthz", 200): 1}


def test_routes_are_so_many_at_most() -> None:
    totals = RequestTotals()
    for number in range(ROUTES_MAX + 50):
        totals.take("GET", f"/{number}", 200, 0.1)
    assert len(totals.seconds) == ROUTES_MAX + 1
    assert totals.seconds[OTHER, OTHER].count == 50
    assert sum(totals.answers.values()) == ROUTES_MAX + 50
