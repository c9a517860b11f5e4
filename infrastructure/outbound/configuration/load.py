"""From a file to a configuration that can be used and kept."""

import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN
from domain.configuration.problems import ConfigurationError, ConfigurationProblem, render_error
from domain.configuration.secrets import SecretReference
from domain.configuration.settings import TokenSource
from domain.configuration.warnings import (
    ConfigurationWarning,
    configuration_warnings,
    script_warnings,
)
from domain.values.json_text import compact_json
from domain.values.text import replace_unstorable
from infrastructure.outbound.configuration.json5 import Document, Json5Error, read_json5
from infrastructure.outbound.configuration.secrets import (
    expand_environment,
    misplaced_secret_text,
    redact,
    secret_at,
    secret_in_file,
)
from infrastructure.outbound.configuration.token_files import token_findings
from infrastructure.outbound.configuration.validate import (
    PROBLEMS_MAX,
    ConfigurationSource,
    check,
    first_problems,
    pointer_in,
)
from infrastructure.outbound.configuration.variables import (
    file_variables,
    known_variables,
    resolve_variables,
)
from infrastructure.outbound.configuration.warnings import (
    agent_workspace_warnings,
    hook_warnings,
    model_warnings,
    webhook_warnings,
    workspace_root_warnings,
)
from infrastructure.outbound.credentials.warnings import credential_warnings

FILE_BYTES_MAX = 512 * 1024


def read_file(path: Path) -> Document:
    """The document in a file of at most 512 KiB; ConfigurationError names the file as given."""
    source = str(path)
    try:
        # Asked before opening: opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigurationError([ConfigurationProblem("is not a regular file", source=source)])
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        message = "there is no such file: check its path"
        raise ConfigurationError([ConfigurationProblem(message, source=source)]) from None
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not a valid path"
        message = f"cannot be read: {reason}"
        raise ConfigurationError([ConfigurationProblem(message, source=source)]) from None
    if len(content) > FILE_BYTES_MAX:
        message = f"is larger than {FILE_BYTES_MAX // 1024} KiB"
        raise ConfigurationError([ConfigurationProblem(message, source=source)])
    try:
        return read_text(content.decode("utf-8"), source)
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        problem = ConfigurationProblem("is not UTF-8; save it as UTF-8", source=source, line=line)
        raise ConfigurationError([problem]) from None


def read_text(text: str, source: str) -> Document:
    """The document in a text; `source` is how problems name it. Raises ConfigurationError."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as failure:
        line, column = _place(text, failure.start)
        problem = ConfigurationProblem(
            "contains half of a surrogate pair", source, "", line, column
        )
        raise ConfigurationError([problem]) from None
    if size_bytes > FILE_BYTES_MAX:
        problem = ConfigurationProblem(
            f"is larger than {FILE_BYTES_MAX // 1024} KiB", source=source
        )
        raise ConfigurationError([problem])
    if "\0" in text:
        line, column = _place(text, text.index("\0"))
        problem = ConfigurationProblem("contains NUL", source=source, line=line, column=column)
        raise ConfigurationError([problem])
    try:
        document = read_json5(text)
    except Json5Error as failure:
        line, column = _place(text, failure.offset)
        problem = ConfigurationProblem(failure.message, source, failure.pointer, line, column)
        raise ConfigurationError([problem]) from None
    if document.repeated:
        raise ConfigurationError(_repeated_key_problems(document, source))
    return document


def _repeated_key_problems(document: Document, source: str) -> list[ConfigurationProblem]:
    problems = []
    for pointer, offset in document.repeated[: PROBLEMS_MAX + 1]:
        line, column = document.line_and_column(offset)
        problems.append(
            ConfigurationProblem("this key stands twice", source, pointer, line, column)
        )
    return first_problems(problems, source)


def _place(text: str, offset: int) -> tuple[int, int]:
    return Document(None, {}, (), text).line_and_column(offset)


WARNINGS_MAX = 50
FILE_UNUSABLE = "its configuration file cannot be used; the server's log says why"
"""What callers are told instead of `LoadedConfiguration.missing`, which holds a path of this
machine."""


@dataclass(frozen=True)
class LoadedConfiguration:
    """A configuration with what is needed to keep it and to use it.

    `configuration` and `stored` hold no secret but `configuration.spawnlog.database_url`: secrets
    are references, for `resolve`. `stored` is what is hashed, kept, and given to scripts as `cfg`.
    `path` is None for the built-in; `folder` is what relative paths in the file start from.
    `warnings` (at most 50) tell what is not wrong and can hardly be meant. `errors` are mistakes
    that stop only what needs the value: a token whose file is missing. `missing` says why the file
    of a kept revision cannot be used, for the log of the server alone: then there are no secrets
    but those of the environment.
    """

    configuration: Configuration
    stored: dict[str, Any]
    path: Path | None
    secret_pointers: tuple[str, ...]
    folder: Path
    _values: Any = field(repr=False, compare=False)
    warnings: tuple[ConfigurationProblem, ...] = ()
    errors: tuple[ConfigurationProblem, ...] = ()
    missing: str | None = None

    @property
    def source(self) -> str:
        """The absolute path of the file, as the log records it, or `built-in`."""
        return replace_unstorable(str(self.path.absolute())) if self.path else BUILT_IN

    @property
    def stored_text(self) -> str:
        """`stored` as compact JSON in the order of the file, which is the order of arguments
        in an `argMap`."""
        return compact_json(self.stored)

    def resolve(
        self, value: str | SecretReference, variables: Mapping[str, str] | None = None
    ) -> str:
        """Return the text that is meant: look a reference up in the file and replace each
        `${NAME}` from the environment, else from the file's own `env`. Call it at the moment of
        use and keep nothing. ConfigurationError."""
        text = self.resolve_secret(value.pointer) if isinstance(value, SecretReference) else value
        return self._expand(text, variables)

    def resolve_secret(self, pointer: str) -> str:
        """Return the text at a pointer of the file. Raise ConfigurationError, without the path of
        the file: the caller may record it or return it to whoever spawns."""
        if self.missing is not None:
            raise ConfigurationError([ConfigurationProblem(FILE_UNUSABLE, "a secret", pointer)])
        return secret_at(self._values, pointer)

    def resolve_token(self, source: TokenSource, variables: Mapping[str, str] | None = None) -> str:
        """The text of a token, from wherever the file says it is. ConfigurationError."""
        if source.variable is not None:
            return self._expand("${" + source.variable + "}", variables)
        if source.file is not None:
            return secret_in_file(self.path_of(self._expand(source.file, variables)))
        assert source.secret is not None
        return self.resolve(source.secret, variables)

    def _expand(self, text: str, variables: Mapping[str, str] | None) -> str:
        return expand_environment(text, self.variables(variables))

    def variables(self, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return the variables of `environment` (default: this process), then the file's own."""
        return known_variables(file_variables(self._values, environment), environment)

    def place(self, written: str) -> Path:
        """The path that is meant where `${NAME}` may stand in it. ConfigurationError."""
        return self.path_of(self.resolve(written))

    def path_of(self, written: str) -> Path:
        """A path as the file writes it: `~` is the home folder, relative ones start at `folder`.
        ConfigurationError for a `~name` that is nobody's, and for one that is blank, which would be
        `folder` itself."""
        if not written.strip():
            message = "a path is blank: a variable that it refers to holds nothing"
            raise ConfigurationError([ConfigurationProblem(message)])
        try:
            return self.folder / Path(written).expanduser()
        except RuntimeError:
            message = "names a home folder that this machine does not know"
            raise ConfigurationError([ConfigurationProblem(message, source=written)]) from None


def load(path: Path | None) -> LoadedConfiguration:
    """The configuration of a file, or the built-in one for None. Raises ConfigurationError."""
    if path is None:
        builtin = Configuration.builtin()
        stored = builtin.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return LoadedConfiguration(builtin, stored, None, (), Path.cwd(), stored)
    return load_document(read_file(path), str(path), path.absolute().parent, path=path)


def load_recorded(revision: int, source: str, stored_text: str) -> LoadedConfiguration:
    """Return the file of a kept revision, whose path on record is `source`. If it is gone or says
    something else now, return what was kept; its `missing` says why. ConfigurationError if this
    program cannot read the revision."""
    if source == BUILT_IN:
        stored = orjson.loads(stored_text)
        return LoadedConfiguration(
            configuration_from_stored(stored), stored, None, (), Path.cwd(), stored
        )
    path = Path(source)
    if not path.is_absolute():
        missing = f"{source}: its folder is not on record"
    else:
        try:
            loaded = load(path)
        except ConfigurationError as error:
            missing = str(error.problems[0])
        else:
            if loaded.stored_text == stored_text:
                return loaded
            missing = (
                f"{source}: it, or a variable in it, has changed since revision {revision} was"
                " activated"
            )
    return load_without_file(source, stored_text, missing)


def load_without_file(source: str, stored_text: str, missing: str) -> LoadedConfiguration:
    """Return what was kept of a revision; `missing` says why its file cannot be used.
    ConfigurationError if this program cannot read the revision."""
    stored, path = orjson.loads(stored_text), Path(source)
    configuration, folder = configuration_from_stored(stored), path.absolute().parent
    return LoadedConfiguration(configuration, stored, path, (), folder, stored, missing=missing)


def load_document(
    document: Document,
    source: str,
    folder: Path,
    *,
    path: Path | None = None,
    references_allowed: bool = False,
) -> LoadedConfiguration:
    """The configuration that a document holds; `source` is what problems call it, and relative
    paths start in `folder`. Raises ConfigurationError.

    `references_allowed`: it may have been made from a kept revision.
    """
    origin = ConfigurationSource(source, document)
    values = document.values
    unresolved: tuple[ConfigurationWarning, ...] = ()
    if isinstance(values, dict):
        variables = known_variables(file_variables(values))
        values, unresolved = resolve_variables(values, variables)
    check(values, origin, references_allowed=references_allowed)
    return _build_loaded(values, origin, path, folder, unresolved)


def configuration_from_stored(values: Mapping[str, Any]) -> Configuration:
    """The configuration of a kept revision; ConfigurationError when this program cannot read it,
    as when a newer one wrote it."""
    try:
        return Configuration.model_validate(dict(values))
    except ValidationError as failure:
        raise ConfigurationError(
            ConfigurationProblem(render_error(error)[0], "kept revision", pointer_in(values, error))
            for error in failure.errors(include_url=False)
        ) from None


def _build_loaded(
    values: dict[str, Any],
    origin: ConfigurationSource,
    path: Path | None,
    folder: Path,
    unresolved: Iterable[ConfigurationWarning],
) -> LoadedConfiguration:
    stored, pointers = redact(values)
    usable = stored
    if "databaseUrl" in values.get("spawnlog", {}):
        address = {"databaseUrl": values["spawnlog"]["databaseUrl"]}
        usable = {**stored, "spawnlog": {**stored["spawnlog"], **address}}
    try:
        configuration = Configuration.model_validate(usable)
    except ValidationError as failure:
        # The values were in order: what is not in order now is a secret in a place for none.
        places = (pointer_in(usable, error) for error in failure.errors(include_url=False))
        raise ConfigurationError(
            origin.problem(place, misplaced_secret_text(place)) for place in places
        ) from None
    loaded = LoadedConfiguration(configuration, stored, path, pointers, folder, values)
    doubtful = chain(
        unresolved,
        configuration_warnings(configuration),
        script_warnings(configuration),
        agent_workspace_warnings(configuration, loaded.place),
        workspace_root_warnings(configuration.spawnlog.workspace_roots, loaded.place),
        credential_warnings(configuration, loaded.place),
        hook_warnings(configuration.spawnlog.hooks, loaded.resolve),
        webhook_warnings(configuration.spawnlog.announce, loaded.resolve),
        model_warnings(configuration, loaded.resolve),
    )
    findings = tuple(
        token_findings(configuration.spawnlog.tokens, loaded.resolve_token, loaded.place)
    )
    doubtful = chain(doubtful, (finding for finding, is_error in findings if not is_error))
    return replace(
        loaded,
        warnings=tuple(
            origin.problem(doubt.pointer, doubt.message, doubt.nearest)
            for doubt in islice(doubtful, WARNINGS_MAX)
        ),
        errors=tuple(
            origin.problem(finding.pointer, finding.message)
            for finding, is_error in findings
            if is_error
        ),
    )
