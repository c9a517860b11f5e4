"""Each filter of runs is described once, and compares a column that the rows of runs have."""

from application.projections.run_rows import RunRow
from application.queries.run_filter import RunFilter, Where


def test_each_filter_names_a_column_of_runs() -> None:
    columns = {
        name: [one.column for one in field.metadata if isinstance(one, Where)]
        for name, field in RunFilter.model_fields.items()
    }
    assert all(len(named) == 1 for named in columns.values()), columns
    assert {column for (column,) in columns.values()} <= {*RunRow._fields, "status"}
