"""Launches: the prompt and everything else that a run is started with, composed from the record."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from application.context.shared_context import NOTHING_SHARED, SharedStart, read_shared_start
from application.coordination.lane import QueuedChild
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.credentials import Credentials
from application.ports.files import WorkspaceFolders
from application.ports.identifiers import ChildTokens
from application.ports.runtimes import Launch, LaunchError
from application.ports.transcripts import TranscriptFile, Transcripts
from application.spawn.workspace import REPLACED_WORKSPACE
from application.steps.workspace import unusable_workspace_text
from application.telemetry.trace_context import TraceContexts, traceparent_of_run
from domain.configuration.configuration import EffectiveAgent
from domain.configuration.runtimes import Runtime, served_models_of
from domain.context.fork import inherited_rows
from domain.context.thread_binding import Origin, read_origin
from domain.plan.model import fallback_models
from domain.prompt.child_prompt import ComposedPrompt
from domain.prompt.run_prompt import address_refs, attachments_step, compose_run_prompt
from domain.run.commands import StartRun
from domain.run.events import ContinuationPlanned, SessionCreated
from domain.run.facts import PromptPart
from domain.run.state import Run
from domain.values.json_text import NotJsonError, read_json


def attachments_dir(run: Run) -> str | None:
    """Return the absolute path of the run's attachments; None without attachments."""
    step = attachments_step(run)
    if step is None or step.root is None or step.relative is None:
        return None
    return posixpath.join(step.root, step.relative)


FRAMES_MAX = 256
"""Number of agent and model combinations whose fallback models are cached."""

HISTORY_FILES_MAX = 500
"""Maximum number of earlier runs, the newest, whose transcripts a run is given."""


_ATTACHED_GONE = "the attached files no longer exist; spawn again with the files"


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """A launch, and the command that records it."""

    launch: Launch
    start: StartRun


class LaunchComposer:
    """Composer of prompts and launches from the record.

    Args:
        url: Where children call back; None without a server.
        traces: If given, children get a trace context for spans of their own.
    """

    def __init__(
        self,
        work: UnitOfWork,
        tokens: ChildTokens,
        folders: WorkspaceFolders,
        credentials: Credentials,
        transcripts: Transcripts,
        url: str | None,
        traces: TraceContexts | None = None,
    ) -> None:
        self._work = work
        self._tokens = tokens
        self._folders = folders
        self._credentials = credentials
        self._transcripts = transcripts
        self.url = url
        self._traces = traces

    async def prepare_with_texts(
        self, run: Run, child: QueuedChild | None = None, *, is_recorded: bool = True
    ) -> tuple[TextStore, PreparedLaunch]:
        """Prepare the launch of a claimed run, and return it with the text store of its session.

        See `prepare` for the arguments.

        Raises:
            LaunchError: If the run cannot be launched, or its texts were erased.
        """
        if child is not None:
            text_store = child.text_store.empty_copy()
        else:
            found = await self._work.text_store_or_none(run)
            if found is None:
                raise LaunchError("erased", "its texts were erased before it could start")
            text_store = found
        return text_store, await self.prepare(run, text_store, child, is_recorded=is_recorded)

    async def prepare(
        self,
        run: Run,
        text_store: TextStore,
        child: QueuedChild | None = None,
        *,
        is_recorded: bool = True,
    ) -> PreparedLaunch:
        """Prepare the launch of a claimed run.

        Args:
            child: Known facts of a run that was queued just now, which are not read again.
            is_recorded: Whether the run is on record. If not, no folder is created for it.

        Raises:
            LaunchError: If the run cannot be launched.
        """
        runtime = await self.runtime_of(run)
        if runtime is None:
            raise LaunchError("not_executable", f'agent "{run.agent_id}" has no runtime')
        opened = await self._work.run(run.opened_by) if run.opened_by else run
        shared = NOTHING_SHARED
        # A start prepared ahead is recorded only if the family still shares nothing.
        if is_recorded or opened.shares or run.continues is not None:
            shared = await read_shared_start(self._work, run, opened, text_store)
        prompt = await self._compose(run, opened, shared, child)
        await self._ensure_folders(run, opened, is_recorded=is_recorded)
        traceparent = await self._traceparent(run) if is_recorded else None
        launch = await self._launch(run, opened, runtime, prompt, child, shared, traceparent)
        start = StartRun(
            epoch=run.epoch,
            runtime=runtime.type,
            system_prompt=text_store.store("systemPrompt", prompt.system_prompt),
            message=text_store.store("message", prompt.message),
            parts=_store_parts(prompt, text_store),
            shared_context_position=shared.position,
            shared_context=shared.keys,
            inherits=shared.inherits,
        )
        return PreparedLaunch(launch, start)

    async def _launch(
        self,
        run: Run,
        opened: Run,
        runtime: Runtime,
        prompt: ComposedPrompt,
        child: QueuedChild | None,
        shared: SharedStart,
        traceparent: str | None,
    ) -> Launch:
        """Return the launch: recorded facts, and facts that only this server knows."""
        pinned = await self._work.configurations.at(run.config_revision)
        plan = run.plan
        assert run.agent_id is not None
        assert plan is not None
        assert run.child_session_key is not None
        return Launch(
            run_id=run.run_id,
            session_key=run.child_session_key,
            agent_id=run.agent_id,
            requester_session_key=run.requester.session_key,
            depth=run.depth,
            runtime=runtime,
            system_prompt=prompt.system_prompt,
            message=prompt.message,
            model=plan.model_reference,
            fallback_models=_fallback_models(
                pinned.configuration.effective_agent(run.agent_id),
                plan.model_source,
                plan.model_reference,
            ),
            thinking=plan.thinking,
            tools_allow=plan.tools_allow,
            tools_deny=plan.tools_deny,
            shared_context=shared.whole(),
            workspace_dir=plan.workspace_dir,
            attachments_dir=attachments_dir(opened),
            history_files=await self._history(run, opened),
            delivery_origin=await self._thread(run),
            deliver=bool(run.direct_delivery),
            requester=await self._requester(run, child),
            label=run.label,
            run_timeout_seconds=plan.run_timeout_seconds,
            lane=run.lane,
            environment=await self._credentials.environment(pinned, run.agent_id),
            url=self.url,
            traceparent=traceparent,
            token=self._tokens.mint(run.run_id, run.epoch),
        )

    async def _traceparent(self, run: Run) -> str | None:
        if self._traces is None:
            return None
        return traceparent_of_run(run.run_id, await self._traces.of(run.run_id))

    async def runtime_of(self, run: Run) -> Runtime | None:
        """Return the configured runtime of the run's agent; None if it has none."""
        pinned = await self._work.configurations.at(run.config_revision)
        assert run.agent_id is not None
        return pinned.configuration.effective_agent(run.agent_id).runtime

    async def _ensure_folders(self, run: Run, opened: Run, *, is_recorded: bool) -> None:
        """Check that the run's folders still exist, since they may have changed while it was
        queued.

        Only an agent's own folder is created again, and only for a recorded run. New links are not
        followed.
        """
        assert run.plan is not None
        assert run.agent_id is not None
        folder, source = run.plan.workspace_dir, run.plan.workspace_source
        # A plan without a source has an unresolved path that may contain links.
        if folder is not None and source and not await self._folders.is_still(folder):
            if source == "agent" and is_recorded:
                await self._make_folder(folder, run.agent_id)
            if not await self._folders.is_still(folder):
                raise LaunchError("not_executable", REPLACED_WORKSPACE)
        attached = attachments_dir(opened)
        if attached is not None and not await self._folders.is_still(attached):
            raise LaunchError("not_executable", _ATTACHED_GONE)

    async def _make_folder(self, folder: str, agent_id: str) -> None:
        try:
            missing = await self._folders.missing(folder)
            if missing is not None:
                await self._folders.make(*missing)
        except OSError as error:
            text = unusable_workspace_text(error, agent_id)
            raise LaunchError("not_executable", text) from None

    async def _history(self, run: Run, opened: Run) -> tuple[str, ...]:
        """Return the transcript files of the session's earlier runs, oldest first.

        The fork snapshot may be on another machine. The sealed transcript of the first run includes
        it.
        """
        if run.continues is not None:
            assert run.child_session_key is not None
            runs = await self._work.registry.runs_of_session(
                run.child_session_key, limit=HISTORY_FILES_MAX + 1
            )
            before = await self._files_of(
                [earlier for earlier in runs if earlier.run_id != run.run_id]
            )
            # If the first run never started, its transcript does not include the fork snapshot.
            return before if opened.transcript else (*await self._fork_snapshot(opened), *before)
        return await self._fork_snapshot(run)

    async def _files_of(self, runs: Sequence[Run]) -> tuple[str, ...]:
        """Write and return the transcript files of `runs` (newest first), oldest first."""
        files = [
            TranscriptFile(run.run_id, run.transcript_path, run.transcript.bytes)
            for run in reversed(runs)
            if run.transcript is not None and run.transcript_path is not None
        ]
        for failure in filter(None, await self._transcripts.write_files(files)):
            text = f"the earlier conversation cannot be written as a file: {failure.strerror}"
            raise LaunchError("not_executable", text)
        return tuple(file.path for file in files)

    async def _fork_snapshot(self, opened: Run) -> tuple[str, ...]:
        rows = inherited_rows(opened.fork)
        if rows == 0:
            return ()
        assert opened.agent_id is not None
        try:
            path = await self._transcripts.write_fork_snapshot(
                opened.run_id, session_id=opened.session_id, agent_id=opened.agent_id, count=rows
            )
        except OSError as error:
            text = f"its earlier conversation cannot be written: {error.strerror}"
            raise LaunchError("not_executable", text) from None
        return (path,)

    async def _requester(self, run: Run, in_hand: QueuedChild | None) -> Mapping[str, object]:
        """Return the addresses that the requester gave for itself."""
        origin = run.requester.origin
        if origin is None:
            return {}
        text = in_hand.texts.get(origin.id) if in_hand is not None else None
        text = text or await self._work.contents.text(origin)
        try:
            found = read_json(text) if text else None
        except NotJsonError:
            found = None
        return found if isinstance(found, dict) else {}

    async def _thread(self, run: Run) -> Origin | None:
        if run.delivery_origin is None:
            return None
        return read_origin(await self._work.contents.text(run.delivery_origin)) or None

    async def _compose(
        self, run: Run, opened: Run, shared: SharedStart, in_hand: QueuedChild | None
    ) -> ComposedPrompt:
        planned = in_hand.created if in_hand is not None else await self._planned(run)
        refs = [*(ingredient.content for ingredient in planned.ingredients), *address_refs(run)]
        texts = in_hand.texts if in_hand is not None else await self._work.contents.texts(refs)
        return compose_run_prompt(
            run, opened, planned.ingredients, planned.max_depth, shared.values, texts
        )

    async def _planned(self, run: Run) -> SessionCreated | ContinuationPlanned:
        if run.continues is None:
            return await self._work.event(SessionCreated, run.run_id)
        return await self._work.event(ContinuationPlanned, run.run_id)


@lru_cache(maxsize=FRAMES_MAX)
def _fallback_models(agent: EffectiveAgent, source: str, taken: str | None) -> tuple[str, ...]:
    return fallback_models(
        agent.model_settings,
        source=source,
        taken=taken,
        served=served_models_of(agent.runtime),
        aliases=agent.aliases,
        known=agent.known_models,
    )


def _store_parts(prompt: ComposedPrompt, text_store: TextStore) -> tuple[PromptPart, ...]:
    texts = {
        "systemPrompt": prompt.system_prompt.encode(),
        "message": prompt.message.encode(),
    }
    stretches = [texts[part.of][part.start : part.end] for part in prompt.parts]
    # Many parts are equal separators, so each distinct part is hashed once.
    hashes = {stretch: text_store.hash(stretch) for stretch in set(stretches)}
    return tuple(
        [
            PromptPart(
                of=part.of,
                source=part.source,
                start=part.start,
                end=part.end,
                hmac=hashes[stretch],
            )
            for part, stretch in zip(prompt.parts, stretches, strict=True)
        ]
    )
