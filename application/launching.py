"""What a child is given when it starts: its prompt, composed from recorded ingredients."""

from dataclasses import dataclass

from application.keeping import Keeper
from application.ports.child_tokens import ChildTokens
from application.ports.runtimes import CannotLaunch, Launch
from application.work import Work
from domain.child_prompt import ChildFacts, ComposedPrompt, Surroundings, compose_prompt
from domain.prompt_part import Part
from domain.run.commands import StartRun
from domain.run.events import SessionCreated
from domain.run.facts import PromptPart
from domain.run.state import Run
from domain.task_message import Contribution, task_pieces


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch and the record of it."""

    launch: Launch
    start: StartRun


class Launching:
    """Composes prompts and launches from the record. `url` is where children call back."""

    def __init__(self, work: Work, tokens: ChildTokens, url: str | None) -> None:
        self._work = work
        self._tokens = tokens
        self.url = url

    async def prepare(self, run: Run, keeper: Keeper) -> Prepared:
        """The launch of a claimed run. Raises `CannotLaunch`."""
        pinned = await self._work.configurations.at(run.config_revision)
        assert run.agent_id is not None
        assert run.plan is not None
        assert run.child_session_key is not None
        runtime = pinned.configuration.runtime_for(run.agent_id)
        if runtime is None:
            raise CannotLaunch("not_executable", f'agent "{run.agent_id}" has no runtime')
        prompt = await self._compose(run)
        launch = Launch(
            run_id=run.run_id,
            session_key=run.child_session_key,
            agent_id=run.agent_id,
            requester_session_key=run.requester.session_key,
            depth=run.depth,
            runtime=runtime,
            system_prompt=prompt.system_prompt,
            message=prompt.message,
            model=_reference(run),
            thinking=run.plan.thinking,
            tools_allow=run.plan.tools_allow,
            tools_deny=run.plan.tools_deny,
            workspace_dir=run.plan.workspace_dir,
            environment=self._work.configurations.environment_of(pinned, runtime),
            url=self.url,
            token=self._tokens.mint(run.run_id, run.epoch),
        )
        start = StartRun(
            epoch=run.epoch,
            runtime=runtime.type,
            system_prompt=keeper.keep("systemPrompt", prompt.system_prompt),
            message=keeper.keep("message", prompt.message),
            parts=_recorded(prompt, keeper),
        )
        return Prepared(launch, start)

    async def _compose(self, run: Run) -> ComposedPrompt:
        created = await self._created(run)
        texts = await self._work.contents.texts(one.content for one in created.ingredients)
        pieces: dict[str, list[Contribution]] = {"prepend": [], "append": []}
        task = preamble = ""
        for one in created.ingredients:
            text = texts.get(one.content.id, "")
            if one.position == "task":
                task = text
            elif one.position == "preamble":
                preamble = text
            else:
                source = one.source.removeprefix("script:")
                pieces[one.position].append(Contribution(source, text))
        assert run.child_session_key is not None
        child = ChildFacts(
            depth=created.depth,
            max_spawn_depth=created.max_depth,
            child_session_key=run.child_session_key,
            label=run.label,
            requester_session_key=run.requester.session_key,
        )
        return compose_prompt(
            child,
            task_pieces(task, prepend=pieces["prepend"], append=pieces["append"]),
            Surroundings(preamble=preamble),
        )

    async def _created(self, run: Run) -> SessionCreated:
        recorded = await self._work.log.first("SessionCreated", run.run_id)
        assert recorded is not None
        assert isinstance(recorded.event, SessionCreated)
        return recorded.event


def _reference(run: Run) -> str | None:
    assert run.plan is not None
    if run.plan.model is None:
        return None
    provider = run.plan.model_provider
    return f"{provider}/{run.plan.model}" if provider else run.plan.model


def _recorded(prompt: ComposedPrompt, keeper: Keeper) -> tuple[PromptPart, ...]:
    texts = {
        "systemPrompt": prompt.system_prompt.encode(),
        "message": prompt.message.encode(),
    }
    return tuple(_part(part, texts[part.of], keeper) for part in prompt.parts)


def _part(part: Part, text: bytes, keeper: Keeper) -> PromptPart:
    return PromptPart(
        of=part.of,
        source=part.source,
        start=part.start,
        end=part.end,
        hmac=keeper.hash(text[part.start : part.end]),
    )
