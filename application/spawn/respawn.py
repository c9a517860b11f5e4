"""Respawn: rebuild the request of an earlier run, to spawn from it again with changes.

The record has the whole request except the contents of attached files. Names of other runs resolve
to the same runs again, and references to results keep their names. If one of the names matched no
run, or several, all names are looked up again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec.structs import fields

from application.context.recorded_scripts import read_recorded_outputs
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration, RevisionErasedError
from application.ports.transcripts import Transcripts
from application.steps.context_fork import read_extent
from domain.configuration.problems import ConfigurationError
from domain.context.fork import FORK_TOKENS_MAX
from domain.run.events import SpawnRequested
from domain.run.facts import Dependency, GivenOptions
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.spawn.dependencies import DependencyRequest, read_dependencies
from domain.spawn.request import ResolvedSpawn, effective_mode
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.json_text import merge_patch, read_json
from domain.values.record import ContentRef
from domain.values.refusals import Rejected
from domain.values.shared_values import SharedContextRequest

Members = dict[str, Any]
"""A request as JSON members."""


class CannotRespawn(Rejected):
    """The run cannot be respawned, or not with these changes. The message names the
    alternatives."""


class RevisionNotFound(CannotRespawn):
    """The configuration revision that the respawn names does not exist."""


class OriginalErased(CannotRespawn):
    """Texts that the respawn needs were erased."""


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """The recorded request of a run.

    `has_files` is True if it had attachments, whose contents are kept only until they are written.
    """

    run: Run
    members: Members
    has_files: bool

    def changed_by(
        self, changes: Mapping[str, object], requester_key: str, *, with_transcript: bool
    ) -> tuple[Members, tuple[str, ...]]:
        """Return the request with a JSON merge patch applied, and the names of the members that
        differ.

        Args:
            changes: The merge patch.
            requester_key: Canonical key of the session that requests the respawn.
            with_transcript: The child begins with a transcript, so the request's `context` is
                dropped.

        Raises:
            CannotRespawn: If the run had attachments and the changes do not mention them.
        """
        if self.has_files and "attachments" not in changes:
            raise CannotRespawn(
                f"the files attached to run {self.run.run_id} are not stored: set attachments"
                " in the changes, or null for none"
            )
        original = {**self.members}
        if with_transcript:
            original.pop("context", None)
        if requester_key != self.run.requester.session_key:
            # The addresses and assertions of the earlier requester do not apply to another session.
            original.pop("requester")
        merged = merge_patch(original, changes)
        assert isinstance(merged, dict)
        requester = merged.get("requester")
        # An invalid key stays, to be refused as in any spawn.
        if isinstance(requester, dict) and isinstance(requester.get("sessionKey"), str):
            merged["requester"] = {**requester, "sessionKey": requester_key}
        names = {*original, *merged}
        changed = {name for name in names if self.members.get(name) != merged.get(name)}
        if self.has_files:
            changed.add("attachments")
        return merged, tuple(sorted(changed))


async def read_earlier_request(work: UnitOfWork, run: Run) -> EarlierRequest:
    """Return the recorded request of a run.

    Raises:
        CannotRespawn: If the run continued a session, so that no spawn request began it.
        OriginalErased: If its texts were erased.
    """
    if run.continues is not None:
        raise CannotRespawn(
            f"run {run.run_id} continues a session and has no spawn request: respawn run"
            f" {run.opened_by}, the first of the session, or send the session a message"
        )
    request = await work.event(SpawnRequested, run.run_id)
    return earlier_request(run, request, await work.contents.texts(_refs_of(request)))


def earlier_request(run: Run, request: SpawnRequested, found: Mapping[UUID, str]) -> EarlierRequest:
    """Rebuild the request of a run from its event and texts.

    Args:
        found: The texts that the event refers to, by content id.

    Raises:
        OriginalErased: If one of the texts is missing.
    """
    texts = _Texts(run, found)
    argument = texts.of(request.dependencies_argument)
    unbound = read_dependencies(argument) if argument is not None else ()
    members = {
        "requester": _requester(request, texts),
        "task": texts.of(request.task),
        "label": request.label,
        "agentId": texts.of(request.agent_id_argument)
        or (request.requested_agent_id if request.facts.agent_id_argument_given else None),
        "contextPreamble": texts.of(request.preamble),
        "model": texts.of(request.model_argument) or request.options.model,
        "thinking": texts.of(request.thinking_argument) or request.options.thinking,
        **_options(request),
        **_shared(run, request.shared, unbound, texts),
        **_dependencies([*map(_by_id, request.dependencies), *unbound]),
    }
    given = {name: value for name, value in members.items() if value is not None}
    return EarlierRequest(run, given, has_files=request.attachments is not None)


class _Texts:
    """Texts of a request. Raises `OriginalErased` for a missing one."""

    def __init__(self, run: Run, texts: Mapping[UUID, str]) -> None:
        self._run = run
        self._texts = texts

    def of(self, ref: ContentRef | None) -> str | None:
        if ref is None:
            return None
        text = self._texts.get(ref.id)
        if text is None:
            raise OriginalErased(
                f"the texts of run {self._run.run_id} were erased, so it cannot be respawned;"
                " spawn again"
            )
        return text


def _refs_of(request: SpawnRequested) -> list[ContentRef]:
    shared = request.shared.keys if request.shared is not None else ()
    refs = (
        request.task,
        request.agent_id_argument,
        request.preamble,
        request.model_argument,
        request.thinking_argument,
        request.workspace_argument,
        request.dependencies_argument,
        request.requester.origin,
        *(change.value for change in shared),
    )
    return [ref for ref in refs if ref is not None]


def _requester(request: SpawnRequested, texts: _Texts) -> Members:
    options, origin = request.options, texts.of(request.requester.origin)
    addresses = read_json(origin) if origin is not None else {}
    members = {
        **(addresses if isinstance(addresses, dict) else {}),
        "workspaceDir": texts.of(request.workspace_argument),
        "activeModel": options.active_model,
        "activeThinking": options.active_thinking,
        "sandboxed": options.requester_sandboxed or None,
        "sessionKey": request.requester.session_key,
    }
    return {name: value for name, value in members.items() if value is not None}


def _options(request: SpawnRequested) -> Members:
    """Return the options that differ from the defaults."""
    options, thread = request.options, request.facts.thread
    given = {
        field.encode_name: value
        for field in fields(GivenOptions)
        if (value := getattr(options, field.name)) != field.default
    }
    return {
        **given,
        "thread": thread or None,
        "mode": options.mode if options.mode != effective_mode(None, thread=thread) else None,
        "cleanup": "delete" if options.cleanup == "delete" else None,
    }


def _shared(
    run: Run,
    shared: SharedContextRequest | None,
    unbound: Sequence[DependencyRequest],
    texts: _Texts,
) -> Members:
    """Return the shared context of the request.

    If the original run has already shared its values with its family, only the new child gets them.
    Otherwise they would replace newer values of the family.
    """
    names = [dependency.name for dependency in unbound if dependency.via == "reference"]
    if shared is None and not names:
        return {}
    shared = shared or SharedContextRequest()
    values = {change.key: read_json(texts.of(change.value) or "null") for change in shared.keys}
    names += [reference.key for reference in shared.references]
    references = {f"${name}": "reference" for name in names}
    is_for_child = shared.scope == "child" or (run.stage != "refused" and bool(values))
    return {
        "sharedContext": {**values, **references},
        "sharedContextScope": "child" if is_for_child else None,
    }


def _by_id(dependency: Dependency) -> DependencyRequest:
    return DependencyRequest(str(dependency.run_id), dependency.via, dependency.require)


def _dependencies(requests: Sequence[DependencyRequest]) -> Members:
    """Return the runs to wait for. References are left out; they are part of the shared context."""
    named = [
        (request.via, {"run": request.name, "require": request.require}) for request in requests
    ]
    depends_on = [name for via, name in named if via == "dependsOn"]
    chained = [name for via, name in named if via == "chainAfter"]
    return {"dependsOn": depends_on or None, "chainAfter": chained[0] if chained else None}


# Parts of the earlier run's history that a respawn can reuse.


async def require_transcript(
    work: UnitOfWork, transcripts: Transcripts, run: Run, up_to: int
) -> None:
    """Require that the run's transcript up to entry `up_to` exists and is short enough to fork.

    Raises:
        CannotRespawn: If it does not, with the entry up to which it would.
        OriginalErased: If its texts were erased.
    """
    if await work.contents.key(run.session_id) is None:
        raise OriginalErased(
            f"the texts of run {run.run_id} were erased, so a child cannot start with its"
            " transcript; respawn without"
        )
    extent = await read_extent(transcripts, run.run_id, last=up_to)
    if run.stage in PREPARING or extent.entries == 0:
        raise CannotRespawn(
            f"run {run.run_id} has no transcript that a child can start with; respawn without"
        )
    if extent.entries < up_to:
        raise CannotRespawn(
            f"the transcript of run {run.run_id} ends at entry {extent.entries}; use that entry"
            " or an earlier one"
        )
    if not extent.fits:
        raise CannotRespawn(
            f"up to entry {up_to} the transcript of run {run.run_id} has {extent.tokens}"
            f" tokens, more than the {FORK_TOKENS_MAX} that a child can start with; use fewer"
            " entries"
        )


async def read_chosen_revision(work: UnitOfWork, revision: int) -> PinnedConfiguration:
    """Return an earlier revision to decide a spawn under.

    Raises:
        RevisionNotFound: If it does not exist.
        CannotRespawn: If it was erased, cannot be read, or maps session keys differently.
    """
    current = work.configurations.current()
    if revision > current.revision:
        raise RevisionNotFound(
            f"configuration revision {revision} does not exist; the newest is {current.revision}"
        )
    try:
        pinned = await work.configurations.at(revision)
        # This process may still hold it in memory.
        if not await work.configurations.is_kept(revision):
            raise RevisionErasedError(f"the text of configuration revision {revision} was erased")
    except RevisionErasedError:
        raise OriginalErased(
            f"the text of configuration revision {revision} was erased; leave the revision"
            " out to use the current one"
        ) from None
    except ConfigurationError:
        raise CannotRespawn(
            f"configuration revision {revision} is not readable by this release; leave"
            " the revision out to use the current one"
        ) from None
    if pinned.session_naming != current.session_naming:
        raise CannotRespawn(
            f"under configuration revision {revision} session keys mean other sessions than"
            " now; leave the revision out to use the current one"
        )
    return pinned.chosen()


async def require_recorded_scripts(
    work: UnitOfWork, resolved: ResolvedSpawn, pinned: PinnedConfiguration
) -> None:
    """Require that the recorded script output exists which the request wants to reuse.

    Raises:
        NothingRecorded: If some of it is missing.
    """
    respawn = resolved.respawn
    if respawn is None or respawn.scripts == "again":
        return
    given = resolved.request.agent_id
    if given is not None and not is_valid_agent_id(given):
        return
    agent_id = normalise_agent_id(given) if given is not None else resolved.requester_agent_id
    agent = pinned.configuration.effective_agent(agent_id)
    earlier = await work.run(respawn.run_id)
    await read_recorded_outputs(work, earlier, agent.context_scripts)
