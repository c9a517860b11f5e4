"""Dependencies in the body of a spawn request."""

from collections.abc import Mapping, Sequence

from application.queries.errors import invalid_value
from domain.run.facts import DependencyNeeds, DependencyVia
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.request import DEPENDENCIES_MAX, DEPENDENCY_CHARS_MAX

_NEEDS: Mapping[object, DependencyNeeds] = {"success": "success", "ended": "ended"}
_NAME_RULE = f"must be a label or a run id, 1 to {DEPENDENCY_CHARS_MAX} printable characters"
_SHAPE = 'must be a label or a run id, or {"run": …, "require": "success" or "ended"}'


def dependency_requests(
    depends_on: Sequence[object], chain_after: object, references: Sequence[DependencyRequest]
) -> tuple[DependencyRequest, ...]:
    """Return the dependencies of a request, including the runs whose results it refers to.

    Raises:
        QueryError: If a name is invalid, or there are too many.
    """
    dependencies = [
        _dependency_request(value, "dependsOn", f"/dependsOn/{index}")
        for index, value in enumerate(depends_on)
    ]
    if chain_after is not None:
        dependencies.append(_dependency_request(chain_after, "chainAfter", "/chainAfter"))
    dependencies += references
    if len(dependencies) > DEPENDENCIES_MAX:
        text = f"brings the dependencies to {len(dependencies)}, more than the limit of"
        pointer = "/sharedContext" if references else f"/{dependencies[-1].via}"
        raise invalid_value(pointer, f"{text} {DEPENDENCIES_MAX}")
    return tuple(dependencies)


def _dependency_request(value: object, via: DependencyVia, pointer: str) -> DependencyRequest:
    if isinstance(value, str):
        return DependencyRequest(_name(value, pointer), via)
    if not isinstance(value, dict) or "run" not in value or value.keys() - {"run", "require"}:
        raise invalid_value(pointer, _SHAPE)
    name = value["run"]
    require = value.get("require", "success")
    if not isinstance(name, str):
        raise invalid_value(f"{pointer}/run", _NAME_RULE)
    if not isinstance(require, str) or require not in _NEEDS:
        raise invalid_value(f"{pointer}/require", 'must be "success" or "ended"')
    return DependencyRequest(_name(name, f"{pointer}/run"), via, _NEEDS[require])


def _name(given: str, pointer: str) -> str:
    name = given.strip()
    if not 0 < len(name) <= DEPENDENCY_CHARS_MAX or not name.isprintable():
        raise invalid_value(pointer, _NAME_RULE)
    return name
