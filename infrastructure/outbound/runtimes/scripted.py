"""Scripted runtime: plays back the steps in the configuration."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from application.ports.runtimes import Launch, LaunchError, RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import Runtime, ScriptedRuntime, ScriptedStep
from domain.delivery import transcript
from domain.delivery.transcript import RuntimeReading
from domain.values.json_text import text_of
from domain.values.text import replace_unstorable
from infrastructure.outbound.runtimes.command_output import entry_of

READY_STEPS_MAX = 50


class ScriptedRuntimes:
    """Factory of scripted sessions."""

    def is_in_process(self, _: Runtime) -> bool:
        return True

    async def open(self, launch: Launch) -> "ScriptedSession":
        """Open a session. Raise CannotLaunch if the runtime is not scripted."""
        if not isinstance(launch.runtime, ScriptedRuntime):
            raise LaunchError(
                "not_executable",
                f'a runtime of type "{launch.runtime.type}" is not a script',
            )
        return ScriptedSession(launch.runtime)


class ScriptedSession:
    """One playback. It plays no faster than its entries are read."""

    def __init__(self, runtime: ScriptedRuntime) -> None:
        self._runtime = runtime
        self._may_play = asyncio.Event()
        self._killed = asyncio.Event()
        self._ended = False
        self._steps = list(reversed(runtime.steps))
        self._result = None if runtime.result is None else replace_unstorable(runtime.result)
        self._result_played = self._result is None
        self._reading = RuntimeReading()

    def go(self) -> None:
        """Start the playback."""
        self._may_play.set()

    def ready_entries(self) -> Sequence[TranscriptEntry] | None:
        """Play the whole script if it is short and has no pauses. Otherwise return None."""
        is_quick = len(self._steps) <= READY_STEPS_MAX and not any(
            step.after_ms for step in self._steps
        )
        if not is_quick or self._ended or not self._may_play.is_set():
            return None
        played = [entry for step in reversed(self._steps) if (entry := _entry(step)) is not None]
        if not self._result_played:
            played.append(transcript.ResultEntry(text=self._result or ""))
        self._steps.clear()
        self._result_played = self._ended = True
        return [self._emit(entry) for entry in played]

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """Return an iterator of the played entries. A cancelled step loses nothing."""
        return _ScriptedEntries(self)

    async def end(self) -> RuntimeEnd:
        """Play to the end, drop unread entries, and return how the run ended."""
        while await self.play_on() is not None:
            pass
        stopped = self._killed.is_set()
        return RuntimeEnd(
            outcome="stopped" if stopped else self._runtime.outcome,
            reason="stopped" if stopped else "played",
            result=self._reading.result,
            error=None if stopped else self._runtime.error,
            usages=self._reading.usages,
        )

    async def kill(self) -> None:
        """Stop the playback at once."""
        if not self._ended:
            self._ended = True
            self._killed.set()
            self._may_play.set()

    async def play_on(self) -> TranscriptEntry | None:
        """Return the next entry when it is due; None at the end."""
        await self._may_play.wait()
        while self._steps and not self._ended:
            step = self._steps[-1]
            if await self._is_killed_within(step.after_ms / 1000):
                break
            self._steps.pop()
            entry = _entry(step)
            if entry is not None:
                return self._emit(entry)
        if not self._result_played and not self._ended:
            self._result_played = True
            return self._emit(transcript.ResultEntry(text=self._result or ""))
        self._ended = True
        return None

    def _emit(self, entry: transcript.ParsedEntry) -> TranscriptEntry:
        self._reading = self._reading.after(entry)
        return entry_of(entry)

    async def _is_killed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._killed.wait()
        except TimeoutError:
            return False


class _ScriptedEntries:
    def __init__(self, session: ScriptedSession) -> None:
        self._session = session

    def __aiter__(self) -> "_ScriptedEntries":
        return self

    async def __anext__(self) -> TranscriptEntry:
        entry = await self._session.play_on()
        if entry is None:
            raise StopAsyncIteration
        return entry


def _entry(step: ScriptedStep) -> transcript.ParsedEntry | None:
    if step.message is not None:
        return transcript.MessageEntry(role="assistant", text=replace_unstorable(step.message))
    if step.tool is not None:
        return transcript.ToolEntry(
            name=step.tool.name,
            input=_as_json_text(step.tool.input),
            output=_as_json_text(step.tool.output),
        )
    if step.usage is not None:
        return transcript.UsageEntry(
            input_tokens=step.usage.input_tokens,
            output_tokens=step.usage.output_tokens,
            model=step.usage.model,
            cache_read_tokens=step.usage.cache_read_tokens,
            cache_write_tokens=step.usage.cache_write_tokens,
        )
    return None


def _as_json_text(value: Any) -> str | None:
    return None if value is None else replace_unstorable(text_of(value))
