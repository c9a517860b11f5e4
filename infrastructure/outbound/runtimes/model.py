"""The model runtime: a conversation with an endpoint for each run, held in this process.

What calls models is large, and is imported with the first conversation.
"""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Literal

from application.ports.runtimes import CannotLaunch, Launch, RuntimeEnd, TranscriptEntry
from domain.configuration.hooks import header_problem, url_problem
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.runtimes import Runtime
from infrastructure.outbound.configuration.extras import MODEL_MISSING, is_model_installed
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command import printable_tail, secrets_of
from infrastructure.outbound.runtimes.entry_queue import EntryQueue

KILL_AGAIN_SECONDS = 0.5
"""What does not let go of its connections within this is told once more to."""


_GIVEN_UP = "interrupted: the conversation was given up"
_CONVERSATION = "infrastructure.outbound.runtimes.model_conversation"
# What the libraries import only with their first request, while everything else would wait.
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
    """Opens model runtimes."""

    def is_in_process(self, _: Runtime) -> bool:
        """They are held here."""
        return is_model_installed()

    async def open(self, launch: Launch) -> "ModelSession":
        """Raises `CannotLaunch`, also where what calls models is not installed."""
        runtime = launch.runtime
        if not isinstance(runtime, ModelRuntime):
            raise CannotLaunch(
                "not_executable", f'a runtime of type "{runtime.type}" is no model to be called'
            )
        if not is_model_installed():
            raise CannotLaunch("not_executable", MODEL_MISSING)
        _check_values(launch, runtime)
        references = _references(launch, runtime)
        # It takes most of a second, in which others go on.
        await asyncio.to_thread(_import_what_calls)
        return ModelSession(launch, runtime, references)


def _import_what_calls() -> None:
    for name in (_CONVERSATION, *_IMPORTED_LATE):
        import_module(name)


def _references(launch: Launch, runtime: ModelRuntime) -> tuple[str, ...]:
    named = launch.model or runtime.model
    if named is None:
        raise CannotLaunch(
            "not_executable",
            f"no model is named for agent {launch.agent_id}; name one in its model, or in the model"
            " of its runtime",
        )
    return named, *launch.fallback_models


def _check_values(launch: Launch, runtime: ModelRuntime) -> None:
    """Raises `CannotLaunch` for what cannot be sent now that its references are resolved."""
    if runtime.base_url is None:
        text = f"the runtime of agent {launch.agent_id} has no baseUrl; give it one"
        raise CannotLaunch("not_executable", text)
    for name in runtime.values():
        value = launch.environment.get(name)
        complaint = "is not there" if value is None else None
        if value is not None:
            is_url = name == "baseUrl" or name.endswith(".url")
            complaint = url_problem(value) if is_url else header_problem(value)
        if complaint is not None:
            raise CannotLaunch(
                "not_executable", f"{name} of the runtime of agent {launch.agent_id} {complaint}"
            )


def _masked_values(launch: Launch) -> tuple[str, ...]:
    """The secrets, and of a header such as `Bearer …` what stands behind the word too."""
    values = secrets_of(launch)
    return (*values, *(value.rpartition(" ")[2] for value in values if " " in value))


class ModelSession:
    """One conversation. It is ended by its last answer, by a limit, or by `kill`."""

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
        """Ask the model now."""
        if self._task is None and not self._is_killed:
            name = f"conversation of run {self._launch.run_id}"
            self._task = asyncio.create_task(self._converse(), name=name)
            self._task.add_done_callback(self._see_to_the_end)

    def ready_entries(self) -> None:
        """Return None: a model takes its time."""

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """What is said. Always the same iterator; a cancelled step loses nothing."""
        return self._entries

    async def end(self) -> RuntimeEnd:
        """How it ended; entries that nobody read are read and dropped."""
        async for _ in self._entries:
            pass
        assert self._outcome is not None
        return self._outcome

    async def kill(self) -> None:
        """Break it off with every request that is under way."""
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
            ConversationFailed,
            converse,
        )

        try:
            await converse(self._launch, self._runtime, self._references, self._entries)
        except ConversationFailed as failure:
            if self._is_killed:
                self._finish("stopped", "stopped")
            else:
                self._finish("error", failure.reason, self._masked(str(failure)))
        except (asyncio.CancelledError, BaseExceptionGroup):
            # Libraries wrap what cancels them. Whoever waits for the end has to be told of it.
            if not self._is_killed:
                self._finish("error", "interrupted", _GIVEN_UP)
                raise
            self._finish("stopped", "stopped")
        else:
            self._finish("success", "exit")

    def _see_to_the_end(self, _: "asyncio.Task[None]") -> None:
        """One that was cancelled before its first step had no chance to say how it ended."""
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
