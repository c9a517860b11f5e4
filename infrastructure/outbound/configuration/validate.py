"""Validate configuration values; report everything that is wrong, in the order of the file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.problems import (
    ConfigurationError,
    ConfigurationProblem,
    parts_of,
    pointer_of,
    render_error,
)
from domain.configuration.runtimes import PROMPT_PLACEHOLDER, RUNTIME_TYPES
from domain.configuration.secrets import has_secret_url, variables_in
from infrastructure.outbound.configuration.extras import MODEL_MISSING, is_model_installed
from infrastructure.outbound.configuration.json5 import Document
from infrastructure.outbound.configuration.unknown_keys import unknown_keys

# Checks of texts that are taken literally and can hardly be meant so. They apply to files only; a
# stored revision is accepted as it is.
#
# `${NAME}` is replaced in `dataDir`, `databaseUrl`, `workspace`, `agentDir`, `workspaceRoots`, the
# `uri` of scripts, `env`, the `url` and `headers` of hooks and webhooks, the `secrets` of webhooks,
# and the `file` of a token. It is not replaced in a command, because all users of a machine can see
# the arguments of a process.


LiteralPath = tuple[str | int, ...]
LiteralProblem = tuple[str, str]
"""Pointer and message."""


_IN_COMMAND = (
    "is not replaced in a command; put it into env, where it is replaced, and read it there"
)
_IN_FOLDER = "is not replaced here; omit cwd and write it into workspace, where it is replaced"
_PROMPT_AS_PROGRAM = (
    f"{PROMPT_PLACEHOLDER} is not replaced in the name of the program; put it into a later item"
)
_NAMELESS = "must not be blank; write the name of a tool, group:… or *"
_NO_ENDPOINT = 'needs a baseUrl, the address of the endpoint, such as "https://api.openai.com/v1"'
_IN_NAME = "is not replaced here; write the name itself, or set it with SPAWNLOG_HOST or --host"


def literal_texts(values: dict[str, Any]) -> Iterator[LiteralProblem]:
    """Yield problems of single values that the sections do not check.

    These are a text with `${NAME}` or a program with `{prompt}`, where it is not replaced, a tool
    without a name, and a model runtime that cannot be called. An argument of a command that
    contains a blank may be a shell program with braces of its own, so it is not checked.
    """
    agents = _mapping(values.get("agents"))
    yield from _check_runtime(_mapping(agents.get("defaults")), ("agents", "defaults"))
    for index, agent in enumerate(_sequence(agents.get("list"))):
        yield from _check_runtime(_mapping(agent), ("agents", "list", index))
    for key, agent in _mapping(agents.get("entries")).items():
        yield from _check_runtime(_mapping(agent), ("agents", "entries", key))
    settings = _mapping(values.get("spawnlog"))
    yield from _complaint(settings.get("host"), ("spawnlog", "host"), _IN_NAME)
    yield from _nameless_tools(values)


def _check_runtime(agent: dict[str, Any], path: LiteralPath) -> Iterator[LiteralProblem]:
    runtime = _mapping(agent.get("runtime"))
    here = (*path, "runtime")
    if runtime.get("type") == "model":
        if "baseUrl" not in runtime:
            yield pointer_of(here), _NO_ENDPOINT
        elif not is_model_installed():
            yield pointer_of(here), MODEL_MISSING
    if runtime.get("type") != "command":
        return
    yield from _complaint(runtime.get("cwd"), (*here, "cwd"), _IN_FOLDER)
    for index, argument in enumerate(_sequence(runtime.get("command"))):
        may_be_program = index > 0 and isinstance(argument, str) and len(argument.split()) > 1
        if not may_be_program:
            yield from _complaint(argument, (*here, "command", index), _IN_COMMAND)
        if index == 0 and runtime.get("input") == "argv" and _holds_prompt(argument):
            yield pointer_of((*here, "command", index)), _PROMPT_AS_PROGRAM


def _holds_prompt(argument: object) -> bool:
    return isinstance(argument, str) and PROMPT_PLACEHOLDER in argument


def _nameless_tools(values: dict[str, Any]) -> Iterator[LiteralProblem]:
    """Yield blank tool names. A list of blank names only would count as empty, and an empty list
    restricts nothing."""
    path = ("tools", "subagents", "tools")
    policy = values
    for name in path:
        policy = _mapping(policy.get(name))
    for key in ("allow", "alsoAllow", "deny"):
        for index, tool in enumerate(_sequence(policy.get(key))):
            if isinstance(tool, str) and not tool.strip():
                yield pointer_of((*path, key, index)), _NAMELESS


def _complaint(text: object, path: LiteralPath, message: str) -> Iterator[LiteralProblem]:
    names = variables_in(text) if isinstance(text, str) else ()
    if names:
        yield pointer_of(path), f"${{{names[0]}}} {message}"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


PROBLEMS_MAX = 50
REFERENCE_KEY = "$secret"
_IN_A_KEY = (
    "a key below this one holds a secret (a URL with a user name, a password, or a query parameter "
    "such as sig), but keys are shown; write ${NAME} instead of the secret"
)


@dataclass(frozen=True)
class ConfigurationSource:
    """Origin of values: its name in problems, and the document if there is one."""

    source: str
    document: Document | None = None

    def problem(
        self, pointer: str, message: str, nearest: str | None = None, *, at_key: bool = False
    ) -> ConfigurationProblem:
        """Return a problem located at a value, or with `at_key` at its key."""
        line = column = None
        if self.document is not None:
            place = self._place(pointer)
            offset = place.key if at_key else place.value
            line, column = self.document.line_and_column(offset)
        return ConfigurationProblem(message, self.source, pointer, line, column, nearest)

    def _place(self, pointer: str) -> Any:
        assert self.document is not None
        # A missing value has no place; use the place of the object that lacks it.
        while pointer not in self.document.places:
            pointer = pointer.rpartition("/")[0]
        return self.document.places[pointer]


def check(values: Any, origin: ConfigurationSource, *, references_allowed: bool) -> None:
    """Raise ConfigurationError with all problems (at most 50) if the values are not a
    configuration.

    Args:
        values: Values of a document.
        origin: Where they come from.
        references_allowed: Accept `{"$secret": …}`, as in a stored revision.
    """
    problems = list(_problems(values, origin, references_allowed))
    if not problems:
        return
    first: dict[str, ConfigurationProblem] = {}
    for problem in problems:
        first.setdefault(problem.pointer, problem)
    ordered = sorted(first.values(), key=lambda problem: (problem.line or 0, problem.column or 0))
    raise ConfigurationError(first_problems(ordered, origin.source))


def first_problems(
    problems: Sequence[ConfigurationProblem], source: str
) -> list[ConfigurationProblem]:
    """Return all problems, or the first 50 and a note that there are more."""
    if len(problems) <= PROBLEMS_MAX:
        return list(problems)
    more = ConfigurationProblem("there are more problems; fix these first", source)
    return [*problems[:PROBLEMS_MAX], more]


def _problems(
    values: Any, origin: ConfigurationSource, references_allowed: bool
) -> Iterator[ConfigurationProblem]:
    if not isinstance(values, dict):
        yield origin.problem("", "must be an object: { … }")
        return
    for pointer in _secret_keys(values, ""):
        # Report nothing else: other problems would show the key.
        yield origin.problem(pointer, _IN_A_KEY)
        return
    for pointer, value in islice(_references(values, ""), PROBLEMS_MAX):
        if not references_allowed:
            message = "is allowed only in stored revisions; write the value or ${NAME}"
            yield origin.problem(pointer, message, at_key=True)
        elif not isinstance(value, str) or not value.startswith("/"):
            yield origin.problem(pointer, "must be a JSON pointer", at_key=True)
    # One more than is listed, to know whether there are more.
    for pointer, message, nearest in islice(unknown_keys(values), PROBLEMS_MAX + 1):
        yield origin.problem(pointer, message, nearest, at_key=True)
    for pointer, message in islice(literal_texts(values), PROBLEMS_MAX + 1):
        yield origin.problem(pointer, message)
    try:
        Configuration.model_validate(values)
    except ValidationError as failure:
        errors = (error for error in failure.errors(include_url=False) if _is_news(error))
        for error in islice(errors, PROBLEMS_MAX + 1):
            text, meant = render_error(error)
            yield origin.problem(pointer_in(values, error), text, meant)


def _is_news(error: Mapping[str, Any]) -> bool:
    """Return False for errors that were reported already, or only follow from others."""
    is_echo = error["type"] == "too_short" and error["input"]
    return error["type"] != "extra_forbidden" and not is_echo


def pointer_in(values: Any, error: Mapping[str, Any]) -> str:
    """Return the pointer of the value that a validation error is about.

    Pydantic's path has extra parts, such as the alternative that it tried. Parts that are not keys
    of the values are dropped, except a last part that names a missing key.
    """
    path: list[str | int] = []
    here, previous = values, None
    parts = list(error["loc"])
    for index, part in enumerate(parts):
        is_alternative = previous == "runtime" and part in RUNTIME_TYPES
        if not is_alternative and _has(here, part):
            here = here[part]
            path.append(part)
        elif error["type"] == "missing" and index == len(parts) - 1:
            path.append(part)
        previous = part
    inner = "type" if error["type"] == "union_tag_invalid" else error.get("ctx", {}).get("at", "")
    for text in parts_of("/" + inner):
        part = int(text) if isinstance(here, list) and text.isdecimal() else text
        if not _has(here, part):
            break
        here = here[part]
        path.append(part)
    return pointer_of(path)


def _has(here: Any, part: str | int) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)


def _secret_keys(values: Any, pointer: str) -> Iterator[str]:
    """Yield the pointer of each object with a key that contains a secret."""
    if isinstance(values, dict):
        if any(has_secret_url(key) for key in values):
            yield pointer
            return
        for key, value in values.items():
            yield from _secret_keys(value, pointer + pointer_of([key]))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _secret_keys(value, f"{pointer}/{index}")


def _references(values: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    if isinstance(values, dict):
        for key, value in values.items():
            inner = pointer + pointer_of([key])
            if key == REFERENCE_KEY:
                yield inner, value
            yield from _references(value, inner)
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _references(value, f"{pointer}/{index}")
