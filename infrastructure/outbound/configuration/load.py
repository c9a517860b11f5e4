"""Load a file into a configuration that can be used and stored."""

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
    unset_warnings,
)
from infrastructure.outbound.configuration.warnings import (
    agent_workspace_warnings,
    executable_warnings,
    hook_warnings,
    model_warnings,
    webhook_warnings,
    workspace_root_warnings,
)
from infrastructure.outbound.credentials.warnings import credential_warnings

FILE_BYTES_MAX = 512 * 1024


def read_file(path: Path) -> Document:
    """Parse a file of at most 512 KiB.

    Raises:
        ConfigurationError: The file cannot be read or parsed. It names the path as given.
    """
    source = str(path)
    try:
        # Check before opening: opening a FIFO would block until a writer comes.
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
    """Parse a text; `source` is its name in problems.

    Raises:
        ConfigurationError: The text cannot be parsed, or is too large.
    """
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
        problems.append(ConfigurationProblem("duplicate key", source, pointer, line, column))
    return first_problems(problems, source)


def _place(text: str, offset: int) -> tuple[int, int]:
    return Document(None, {}, (), text).line_and_column(offset)


WARNINGS_MAX = 50
FILE_UNUSABLE = "its configuration file cannot be used; the server's log says why"
"""Message for callers in place of `LoadedConfiguration.missing`, which contains a path of this
machine."""


@dataclass(frozen=True)
class LoadedConfiguration:
    """A configuration with all that is needed to store it and to use it.

    `configuration` and `stored` contain references instead of secrets, except
    `configuration.spawnlog.database_url`. `resolve` returns the secrets.

    Attributes:
        configuration: The configuration.
        stored: The values that are hashed, stored, and passed to scripts as `cfg`.
        path: Path of the file; None for the built-in configuration.
        secret_pointers: Pointers of the redacted secrets.
        folder: Folder to which paths in the file are relative.
        warnings: Values that are valid but probably not intended; at most 50.
        errors: Mistakes that disable only what needs the value, such as a token whose file is
            missing.
        missing: Why the file of a stored revision cannot be used, for the server's log only. Then
            no secrets are available except those in the environment.
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
        """Return the absolute path of the file, as the log records it, or `built-in`."""
        return replace_unstorable(str(self.path.absolute())) if self.path else BUILT_IN

    @property
    def stored_text(self) -> str:
        """Return `stored` as compact JSON in the order of the file.

        The order matters: it is the order of the arguments in an `argMap`.
        """
        return compact_json(self.stored)

    def resolve(
        self, value: str | SecretReference, variables: Mapping[str, str] | None = None
    ) -> str:
        """Return the text of a value, with its secret and variables resolved.

        A reference is looked up in the file. Each `${NAME}` is replaced from the environment, else
        from the file's own `env`. Call this at the time of use, and do not store the result.

        Args:
            value: Text or reference.
            variables: Environment variables. Default: those of this process.

        Raises:
            ConfigurationError: The secret is missing, or a variable is not set.
        """
        text = self.resolve_secret(value.pointer) if isinstance(value, SecretReference) else value
        return self._expand(text, variables)

    def resolve_secret(self, pointer: str) -> str:
        """Return the text at a pointer of the file.

        Raises:
            ConfigurationError: There is no such text. The error does not contain the path of the
                file, because callers may record it or return it to a client.
        """
        if self.missing is not None:
            raise ConfigurationError([ConfigurationProblem(FILE_UNUSABLE, "a secret", pointer)])
        return secret_at(self._values, pointer)

    def resolve_token(self, source: TokenSource, variables: Mapping[str, str] | None = None) -> str:
        """Return the text of a token from its variable, file or secret.

        Raises:
            ConfigurationError: The token cannot be resolved.
        """
        if source.variable is not None:
            return self._expand("${" + source.variable + "}", variables)
        if source.file is not None:
            return secret_in_file(self.path_of(self._expand(source.file, variables)))
        assert source.secret is not None
        return self.resolve(source.secret, variables)

    def _expand(self, text: str, variables: Mapping[str, str] | None) -> str:
        return expand_environment(text, self.variables(variables))

    def variables(self, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return all variables: those of `environment` (default: this process), then those of the
        file."""
        return known_variables(file_variables(self._values, environment), environment)

    def place(self, written: str) -> Path:
        """Return the path for a text that may contain `${NAME}`.

        Raises:
            ConfigurationError: A variable is not set, or the path is not valid.
        """
        return self.path_of(self.resolve(written))

    def path_of(self, written: str) -> Path:
        """Return a path of the file as an absolute one.

        `~` is the home folder. Relative paths are relative to `folder`.

        Raises:
            ConfigurationError: The user of a `~name` is unknown, or the path is blank (which would
                mean `folder` itself).
        """
        if not written.strip():
            message = "empty path: its variable is empty"
            raise ConfigurationError([ConfigurationProblem(message)])
        try:
            return self.folder / Path(written).expanduser()
        except RuntimeError:
            message = "refers to the home folder of a user unknown on this machine"
            raise ConfigurationError([ConfigurationProblem(message, source=written)]) from None


def load(path: Path | None) -> LoadedConfiguration:
    """Load a configuration file, or the built-in configuration for None.

    Raises:
        ConfigurationError: The file cannot be read or is not valid.
    """
    if path is None:
        builtin = Configuration.builtin()
        stored = builtin.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return LoadedConfiguration(builtin, stored, None, (), Path.cwd(), stored)
    return load_document(read_file(path), str(path), path.absolute().parent, path=path)


def load_recorded(revision: int, source: str, stored_text: str) -> LoadedConfiguration:
    """Load the file of a stored revision.

    If the file is gone or its content has changed, return the stored values; `missing` says why.

    Args:
        revision: Number of the revision.
        source: Recorded path of its file.
        stored_text: Stored text of the revision.

    Raises:
        ConfigurationError: This version cannot read the revision.
    """
    if source == BUILT_IN:
        stored = orjson.loads(stored_text)
        return LoadedConfiguration(
            configuration_from_stored(stored), stored, None, (), Path.cwd(), stored
        )
    path = Path(source)
    if not path.is_absolute():
        missing = f"{source}: its folder is not recorded"
    else:
        try:
            loaded = load(path)
        except ConfigurationError as error:
            missing = str(error.problems[0])
        else:
            if loaded.stored_text == stored_text:
                return loaded
            missing = (
                f"{source}: the file, or a variable in it, changed since revision {revision} was"
                " activated"
            )
    return load_without_file(source, stored_text, missing)


def load_without_file(source: str, stored_text: str, missing: str) -> LoadedConfiguration:
    """Load a stored revision without its file; `missing` says why that cannot be used.

    Raises:
        ConfigurationError: This version cannot read the revision.
    """
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
    """Load the configuration in a document.

    Args:
        document: The document.
        source: Its name in problems.
        folder: Folder to which paths are relative.
        path: Path of the file, if there is one.
        references_allowed: Accept `{"$secret": …}`, as in a stored revision.

    Raises:
        ConfigurationError: The document is not a valid configuration.
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
    """Return the configuration of a stored revision.

    Raises:
        ConfigurationError: This version cannot read it, for example because a newer one wrote it.
    """
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
        # The values were valid before redaction, so each error is a misplaced secret.
        places = (pointer_in(usable, error) for error in failure.errors(include_url=False))
        raise ConfigurationError(
            origin.problem(place, misplaced_secret_text(place)) for place in places
        ) from None
    loaded = LoadedConfiguration(configuration, stored, path, pointers, folder, values)
    doubtful = chain(
        unresolved,
        configuration_warnings(configuration),
        script_warnings(configuration),
        executable_warnings(configuration, loaded.resolve, folder),
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
    doubts = list(islice(doubtful, WARNINGS_MAX))
    warned = {doubt.pointer for doubt in (*doubts, *(finding for finding, _ in findings))}
    unset = unset_warnings(values, loaded.variables(), warned)
    return replace(
        loaded,
        warnings=tuple(
            origin.problem(doubt.pointer, doubt.message, doubt.nearest)
            for doubt in islice(chain(doubts, unset), WARNINGS_MAX)
        ),
        errors=tuple(
            origin.problem(finding.pointer, finding.message)
            for finding, is_error in findings
            if is_error
        ),
    )
