"""Model runtime: an in-process conversation with an endpoint for each run.

The libraries for it are large, and are imported with the first conversation.
"""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Literal

from application.ports.runtimes import Launch, LaunchError, RuntimeEnd, TranscriptEntry
from domain.configuration.hooks import header_problem, url_problem
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.runtimes import Runtime
from infrastructure.outbound.configuration.extras import MODEL_MISSING, is_model_installed
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command import printable_tail, secrets_of
from infrastructure.outbound.runtimes.entry_queue import EntryQueue

KILL_AGAIN_SECONDS = 0.5
"""A killed conversation is cancelled again after this time, until it has closed its connections."""


_GIVEN_UP = "interrupted: the conversation was abandoned"
_CONVERSATION = "infrastructure.outbound.runtimes.model_conversation"
# Modules that the libraries import lazily, which would block the event loop at the first request.
_IMPORTED_LATE = (
    "genai_prices.data",
    "jiter",
    "jsonschema",
    "openai.lib.streaming.chat",
    "openai.pagination",
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
    "openai.resources.chat.completions.messages",
)


class ModelRuntimes:
    """Factory of model sessions."""

    def is_in_process(self, _: Runtime) -> bool:
        """Return True if the extra `model` is installed."""
        return is_model_installed()

    async def open(self, launch: Launch) -> "ModelSession":
        """Open a session.

        Raises:
            LaunchError: The extra `model` is not installed, no model is named, or a value cannot
                be sent.
        """
        runtime = launch.runtime
        if not isinstance(runtime, ModelRuntime):
            raise LaunchError(
                "not_executable", f'a runtime of type "{runtime.type}" is not a model'
            )
        if not is_model_installed():
            raise LaunchError("not_executable", MODEL_MISSING)
        _check_values(launch, runtime)
        references = _references(launch, runtime)
        # In a thread, because it takes most of a second.
        await asyncio.to_thread(_import_what_calls)
        return ModelSession(launch, runtime, references)


def _import_what_calls() -> None:
    for name in (_CONVERSATION, *_IMPORTED_LATE):
        import_module(name)


def _references(launch: Launch, runtime: ModelRuntime) -> tuple[str, ...]:
    named = launch.model or runtime.model
    if named is None:
        raise LaunchError(
            "not_executable",
            f"agent {launch.agent_id} has no model; set its model, or the model of its runtime",
        )
    return named, *launch.fallback_models


def _check_values(launch: Launch, runtime: ModelRuntime) -> None:
    """Raise CannotLaunch if a resolved value cannot be sent."""
    if runtime.base_url is None:
        text = f"the runtime of agent {launch.agent_id} has no baseUrl; give it one"
        raise LaunchError("not_executable", text)
    for name in runtime.values():
        value = launch.environment.get(name)
        complaint = "is missing" if value is None else None
        if value is not None:
            is_url = name == "baseUrl" or name.endswith(".url")
            complaint = url_problem(value) if is_url else header_problem(value)
        if complaint is not None:
            raise LaunchError(
                "not_executable", f"{name} of the runtime of agent {launch.agent_id} {complaint}"
            )


def _masked_values(launch: Launch) -> tuple[str, ...]:
    """Return the secrets. For a header such as `Bearer …`, add the part after the word."""
    values = secrets_of(launch)
    return (*values, *(value.rpartition(" ")[2] for value in values if " " in value))


class ModelSession:
    """One conversation. It ends with the last answer, at a limit, or by `kill`."""

    def __init__(self, launch: Launch, runtime: ModelRuntime, references: tuple[str, ...]) -> None:
        self._launch = launch
        self._runtime = runtime
        self._references = references
        self._masking = Masker(_masked_values(launch))
        self._entries = EntryQueue(self._masking)
        self._task: asyncio.Task[None] | None = None
        self._is_killed = False
        self._outcome: RuntimeEnd | None = None

    def go(self) -> None:
        """Start the conversation."""
        if self._task is None and not self._is_killed:
            name = f"conversation of run {self._launch.run_id}"
            self._task = asyncio.create_task(self._converse(), name=name)
            self._task.add_done_callback(self._ensure_outcome)

    def ready_entries(self) -> None:
        """Return None: a model has no entries ready."""

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """Return the iterator of entries, always the same one. A cancelled step loses nothing."""
        return self._entries

    async def end(self) -> RuntimeEnd:
        """Read and drop unread entries, and return how the run ended."""
        async for _ in self._entries:
            pass
        assert self._outcome is not None
        return self._outcome

    async def kill(self) -> None:
        """Stop the conversation and all of its requests."""
        self._is_killed = True
        if self._task is None:
            if self._outcome is None:
                self._finish("stopped", "stopped")
            return
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=KILL_AGAIN_SECONDS)

    async def _converse(self) -> None:
        from infrastructure.outbound.runtimes.model_conversation import (
            ConversationError,
            converse,
        )

        try:
            await converse(self._launch, self._runtime, self._references, self._entries)
        except ConversationError as failure:
            if self._is_killed:
                self._finish("stopped", "stopped")
            else:
                self._finish("error", failure.reason, self._masked(str(failure)))
        except (asyncio.CancelledError, BaseExceptionGroup):
            # Libraries may wrap the cancellation. Set the outcome, so that `end` returns.
            if not self._is_killed:
                self._finish("error", "interrupted", _GIVEN_UP)
                raise
            self._finish("stopped", "stopped")
        else:
            self._finish("success", "exit")

    def _ensure_outcome(self, _: "asyncio.Task[None]") -> None:
        """Set the outcome of a task that was cancelled before its first step."""
        if self._outcome is None and self._is_killed:
            self._finish("stopped", "stopped")
        elif self._outcome is None:
            self._finish("error", "interrupted", _GIVEN_UP)

    def _masked(self, text: str) -> str:
        return printable_tail(self._masking.whole(text))

    def _finish(
        self,
        outcome: Literal["success", "error", "stopped"],
        reason: str,
        error: str | None = None,
    ) -> None:
        reading = self._entries.reading
        self._outcome = RuntimeEnd(
            outcome=outcome,
            reason=reason,
            result=reading.result,
            error=error,
            usages=reading.usages,
        )
        self._entries.finish()
