"""Configurations of a what-if: those that decisions were made under, and those to try."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from application.ports.configurations import PinnedConfiguration
from application.queries.changes.json_patch import PatchError, apply_patch
from application.queries.configuration import revision_on_record
from application.queries.errors import QueryError
from application.queries.services import QueryServices
from domain.configuration.problems import ConfigurationError
from domain.values.json_text import compact_json
from domain.what_if.change import Change, WholeConfiguration

REVISIONS_REMEMBERED_MAX = 100
SOURCE = "the configuration"

_T = TypeVar("_T")


@dataclass(slots=True)
class Candidates:
    """The configuration to try: `whole`, or the patched revision of each decision."""

    services: QueryServices
    whole: WholeConfiguration | None
    patch: Sequence[Mapping[str, Any]]
    _then: dict[int, WholeConfiguration] = field(default_factory=dict)
    _now: dict[int, WholeConfiguration] = field(default_factory=dict)
    _changes: dict[int, Change] = field(default_factory=dict)

    async def then(self, revision: int) -> WholeConfiguration:
        """Return a revision as recorded.

        Raises:
            RevisionErasedError: Its text was erased.
            ConfigurationError: This program cannot read it.
        """
        if revision not in self._then:
            pinned = await revision_on_record(self.services.work, revision)
            whole = WholeConfiguration(pinned.configuration, pinned.redacted)
            _remember(self._then, revision, whole)
        return self._then[revision]

    async def now(self, revision: int) -> WholeConfiguration:
        """Return the configuration that replaces a revision.

        Raises:
            RevisionErasedError: The revision to patch was erased.
            QueryError: The patch does not fit the revision, or the result is not a configuration.
        """
        if self.whole is not None:
            return self.whole
        if revision not in self._now:
            pinned = await revision_on_record(self.services.work, revision)
            _remember(self._now, revision, self._patched(pinned))
        return self._now[revision]

    async def change(self, revision: int) -> Change:
        """Return a revision together with the configuration that replaces it.

        Raises the same errors as `then` and `now`.
        """
        if revision not in self._changes:
            change = Change(await self.then(revision), await self.now(revision))
            _remember(self._changes, revision, change)
        return self._changes[revision]

    def _patched(self, pinned: PinnedConfiguration) -> WholeConfiguration:
        try:
            values = apply_patch(list(self.patch), pinned.redacted)
        except PatchError as error:
            raise QueryError(
                "invalid_request",
                f"the patch does not fit configuration revision {pinned.revision}: {error}",
            ) from None
        return read_configuration(self.services, compact_json(values), "/patch")


def _remember(known: dict[int, _T], revision: int, value: _T) -> None:
    known[revision] = value
    if len(known) > REVISIONS_REMEMBERED_MAX:
        del known[next(iter(known))]


def read_configuration(
    services: QueryServices, text: str, pointer: str, name: str | None = None
) -> WholeConfiguration:
    """Return a parsed configuration.

    Args:
        services: Reads the configuration.
        text: JSON5.
        pointer: JSON pointer of the text in the request.
        name: The caller's file name. Without it, errors name no line, because the caller has not
            seen the text.

    Raises:
        QueryError: The configuration cannot be used.
    """
    try:
        return WholeConfiguration(*services.candidates.read(text, name or SOURCE))
    except ConfigurationError as error:
        why = (
            "\n".join(problem.by_pointer() for problem in error.problems) if name is None else error
        )
        raise QueryError(
            "invalid_request",
            f"the configuration cannot be used: {why}",
            errors=[
                {"pointer": f"{pointer}{problem.pointer}", "detail": problem.message}
                for problem in error.problems
            ],
        ) from None
