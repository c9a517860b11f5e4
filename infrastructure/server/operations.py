"""Operations that commands run in their own process: serve, migrate, verify, export and so on."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from application.log.envelope import SYSTEM
from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN
from domain.configuration.problems import ConfigurationError, dotted_path
from domain.configuration.settings import Settings, effective_settings
from domain.plan.effective import EffectiveValue, effective_agent_values, effective_values
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import (
    ExportOptions,
    ExportReport,
    FileFindings,
    ImportOptions,
    ImportReport,
    OnProgress,
    OnTransferProgress,
    OnVerifyProgress,
    ScriptTrialOptions,
    ServeOptions,
    VerifyOptions,
    VerifyReport,
    ignore_rebuild_progress,
    ignore_transfer_progress,
)
from infrastructure.contract.operations import ignore_verify_progress as say_nothing
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
    load,
    read_text,
)
from infrastructure.outbound.configuration.variables import (
    file_variables,
    known_variables,
    resolve_variables,
)
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.identity.data_directory import DataDirectory, expand_data_directory
from infrastructure.outbound.log.rebuild.rebuild import rebuild as rebuild_rows
from infrastructure.outbound.log.transfer.export import ExportOrder, export_log
from infrastructure.outbound.log.transfer.import_log import ImportOrder, import_log
from infrastructure.outbound.log.transfer.line_file import OutputFile, OutputStream, open_input
from infrastructure.outbound.log.transfer.lines import UnknownFileFormatError
from infrastructure.outbound.log.transfer.verify_file import verify_file
from infrastructure.outbound.log.verify.record import (
    VerifyingProcess,
    run_recorded_verification,
)
from infrastructure.outbound.log.verify.verify import STATE_FILE, VerifyOrder
from infrastructure.outbound.log.verify.whole_tables import ExpectedHead
from infrastructure.server.database import (
    Database,
    migrate_database,
    name_unavailable_database,
    open_database,
)
from infrastructure.server.listening import bind_socket
from infrastructure.server.logging import write_to_stderr
from spawnlog.core.data_directory import default_data_directory


def verify_log(
    conninfo: str, data_directory: Path, options: VerifyOptions, on_progress: OnVerifyProgress
) -> VerifyReport:
    """Verify the log of this database."""
    head = ExpectedHead(*options.head, "the head given") if options.head is not None else None
    verification, is_recorded = run_recorded_verification(
        conninfo,
        VerifyOrder(
            state_file=options.state_file or data_directory / STATE_FILE,
            head=head,
            resume=options.resume,
            on_progress=on_progress,
        ),
        VerifyingProcess.here(SYSTEM.name, "command"),
    )
    checked = verification.checked
    return VerifyReport(
        head=str(verification.head),
        began=verification.began,
        events=checked.position - verification.began,
        counts=checked.counts,
        seconds=verification.seconds,
        difference=verification.difference,
        is_recorded=is_recorded,
    )


if TYPE_CHECKING:
    from application.context.script_trial import TrialResult


CONFIG_VARIABLE = "SPAWNLOG_CONFIG"


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Result of a rebuild. `differing` is the number of rows that did not match the events."""

    events: int
    runs: int
    sessions: int
    seconds: float
    differing: int

    @property
    def identical(self) -> bool:
        """Return True if the rebuild changed no row."""
        return self.differing == 0


@dataclass(frozen=True, slots=True)
class ConfigurationReport:
    """Findings in a configuration file.

    `is_usable` is False if no server can start with it. With other problems a server starts, but
    refuses requests that need the faulty value.
    """

    problems: tuple[str, ...]
    agents: tuple[str, ...]
    secret_pointers: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class ConfigurationShown:
    """A configuration as it is shown.

    Attributes:
        stored: The values as they would be stored, with references instead of secrets.
        effective: The same with every default.
        agents: Ids of the agents.
    """

    stored: dict[str, Any]
    effective: dict[str, Any]
    agents: tuple[str, ...]
    _configuration: Configuration
    _is_built_in: bool

    def agent(self, agent_id: str) -> tuple[EffectiveValue, ...] | None:
        """Return the effective values of an agent with their sources, or None if it is unknown."""
        values = effective_agent_values(self._configuration, agent_id)
        if values is None or not self._is_built_in:
            return values
        # A built-in configuration has no places that could be named.
        return tuple(replace(value, source=BUILT_IN) for value in values)


def serve(options: ServeOptions) -> int:
    """Serve until stopped. Return the exit status."""
    # Imported late: it takes longer than many a command runs.
    import uvloop

    from infrastructure.server.active_configuration import read_active_revision
    from infrastructure.server.compose import ServerProcess
    from infrastructure.server.lifecycle import run_server, warn_about
    from infrastructure.server.telemetry import usable_telemetry

    # Objects of modules stay alive, so the collector need not scan them again.
    gc.freeze()
    gc.enable()
    write_to_stderr()
    loaded, settings, directory = _prepare_start(options)
    config, active = _config_path(options), None
    with contextlib.ExitStack() as stack:
        if config is not None:
            settings = usable_telemetry(loaded, settings)
            # Bound before the database starts, so that a port in use fails at once.
            listening = stack.enter_context(bind_socket(settings))
        url = _database_url(loaded, settings)
        if url is None:
            directory.require_embedded_log()
        database = open_database(url, directory.postgres)
        stack.callback(database.close)
        if config is None:
            with name_unavailable_database():
                active = asyncio.run(read_active_revision(database.conninfo))
            if active is not None:
                loaded = active.loaded
                settings = _effective_settings(loaded, options)
            settings = usable_telemetry(loaded, settings)
            listening = stack.enter_context(bind_socket(settings))
        warn_about(loaded)
        process = ServerProcess(loaded, settings, directory, database, config=config, active=active)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run_server(process, listening))


def migrate(options: ServeOptions) -> str:
    """Migrate the database schema to this release. Return a sentence about it."""
    loaded, settings, folder = _load_settings(options)
    url = _database_url(loaded, settings)
    if url is None:
        _require_embedded_log(folder)
    return migrate_database(url, DataDirectory.open(folder).postgres)


def rebuild(
    options: ServeOptions, on_progress: OnProgress = ignore_rebuild_progress
) -> RebuildReport:
    """Rebuild the rows of the projections from the events, while servers keep running."""
    _, database = _open_log(options)
    try:
        with name_unavailable_database():
            rebuilt = asyncio.run(rebuild_rows(database.conninfo, on_progress=on_progress))
    except CorruptHistoryError as error:
        raise UserError(f"the read tables cannot be rebuilt from the log: {error}") from error
    finally:
        database.close()
    return RebuildReport(
        rebuilt.events, rebuilt.runs, rebuilt.sessions, rebuilt.seconds, rebuilt.differing or 0
    )


def verify(
    options: ServeOptions,
    verify_options: VerifyOptions,
    on_progress: OnVerifyProgress = say_nothing,
) -> VerifyReport:
    """Verify the log, while servers keep running."""
    directory, database = _open_log(options)
    try:
        return verify_log(database.conninfo, directory.path, verify_options, on_progress)
    finally:
        database.close()


def export_to_file(
    options: ServeOptions,
    export_options: ExportOptions,
    on_progress: OnTransferProgress = ignore_transfer_progress,
) -> ExportReport:
    """Export the log or a part of it as lines, while servers keep running.

    Raises:
        UnknownNameError: The tree does not exist.
    """
    with _open_destination(export_options) as destination:
        _, database = _open_log(options)
        try:
            exported = export_log(
                database.conninfo,
                ExportOrder(
                    destination,
                    first=export_options.first,
                    last=export_options.last,
                    tree=export_options.tree,
                    has_contents=export_options.contents,
                    has_transcripts=export_options.transcripts,
                    is_resumed=export_options.resume,
                    on_progress=on_progress,
                ),
            )
        finally:
            database.close()
    seal = exported.seal
    return ExportReport(
        scope=exported.header.scope,
        events=seal.events,
        began=exported.began,
        keys=seal.keys,
        contents=seal.contents,
        entries=seal.entries,
        head=f"{seal.last_position}:{seal.chain_hash.hex()}",
        sha256=seal.sha256.hex(),
        seconds=exported.seconds,
    )


@contextlib.contextmanager
def _open_destination(options: ExportOptions) -> Iterator[OutputFile | OutputStream]:
    if options.out is not None:
        with OutputFile(options.out, resume=options.resume, force=options.force) as file:
            yield file
        return
    if options.resume or options.force:
        raise UserError("--resume and --force need a file: give --out FILE")
    if sys.stdout.isatty():
        raise UserError("a log is not written to a terminal: give --out FILE, or use a pipe")
    yield OutputStream(sys.stdout.buffer)


def import_from_file(
    options: ServeOptions,
    import_options: ImportOptions,
    on_progress: OnTransferProgress = ignore_transfer_progress,
) -> ImportReport:
    """Import an exported file into an empty log."""
    # A file of another kind is refused without a database.
    with open_input(import_options.file):
        pass
    loaded, settings, directory = _prepare_start(options)
    database = open_database(_database_url(loaded, settings), directory.postgres)
    try:
        imported = import_log(
            database.conninfo,
            ImportOrder(
                import_options.file,
                without_texts=import_options.without_texts,
                resume=import_options.resume,
                on_progress=on_progress,
            ),
        )
    finally:
        database.close()
    seal = imported.seal
    return ImportReport(
        events=seal.events,
        began=imported.began,
        runs=imported.runs,
        sessions=imported.sessions,
        contents=seal.contents,
        entries=seal.entries,
        head=f"{seal.last_position}:{seal.chain_hash.hex()}",
        seconds=imported.seconds,
    )


def verify_exported(
    path: Path, on_progress: OnTransferProgress = ignore_transfer_progress
) -> FileFindings:
    """Verify an exported file without a server or a database."""
    try:
        return verify_file(path, on_progress)
    except UnknownFileFormatError as error:
        raise UserError(str(error)) from error


def check_configuration(path: Path | None) -> ConfigurationReport:
    """Check a configuration file."""
    try:
        loaded = load(path)
    except ConfigurationError as error:
        problems = tuple(map(str, error.problems))
        return ConfigurationReport(problems, (), (), is_usable=False)
    try:
        effective_settings(loaded.configuration.spawnlog, {}, {})
    except ConfigurationError as error:
        refused = tuple(map(str, error.problems))
    else:
        refused = ()
    return ConfigurationReport(
        (*refused, *map(str, loaded.errors)),
        loaded.configuration.agent_ids(),
        loaded.secret_pointers,
        tuple(map(str, loaded.warnings)),
        is_usable=not refused,
    )


def show_configuration(path: Path | None) -> ConfigurationShown:
    """Return the configuration of a file, or the built-in one for None."""
    try:
        loaded = load(path)
        # Read back from the stored form, the configuration holds no secrets.
        configuration = configuration_from_stored(loaded.stored)
    except ConfigurationError as error:
        raise UserError("\n".join(map(str, error.problems))) from error
    return ConfigurationShown(
        loaded.stored,
        effective_values(configuration, loaded.stored),
        configuration.agent_ids(),
        configuration,
        path is None,
    )


def candidate_of(text: str, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the members of a what-if request for the configuration in a text, and warnings.

    A start resolves `${NAME}` from its environment. The server must not read its own environment
    for a caller, so variables are resolved here. A text without variables is sent unchanged, so
    that the server's errors name its lines. Warnings name unresolved references: a server that has
    the variable records its value instead.
    """
    as_text: dict[str, Any] = {"configText": text, "configName": name}
    try:
        values = read_text(text, name).values
    except ConfigurationError:
        return as_text, ()
    if not isinstance(values, dict):
        return as_text, ()
    resolved, unresolved = resolve_variables(values, known_variables(file_variables(values)))
    warnings = tuple(f"{dotted_path(problem.pointer)}: {problem.message}" for problem in unresolved)
    return (as_text if resolved == values else {"config": resolved}), warnings


def show_stored_configuration(stored: dict[str, Any]) -> ConfigurationShown:
    """Return the configuration of a stored revision."""
    try:
        configuration = configuration_from_stored(stored)
    except ConfigurationError as error:
        raise UserError("\n".join(map(str, error.problems))) from error
    return ConfigurationShown(
        stored,
        effective_values(configuration, stored),
        configuration.agent_ids(),
        configuration,
        False,
    )


def try_scripts(options: ServeOptions, request: ScriptTrialOptions) -> "TrialResult":
    """Run an agent's context scripts as a spawn would. No server is needed.

    Raises:
        UserError: No file is named. The built-in configuration has no scripts to try.
    """
    from infrastructure.server.script_trial import run_trial

    if _config_path(options) is None:
        raise UserError(
            "the scripts are read from a configuration file, and no server is asked: give --config"
            " FILE or SPAWNLOG_CONFIG; `spawnlog config history` names the file of the server"
        )
    loaded, _, folder = _load_settings(options)
    return run_trial(loaded, request, (folder or default_data_directory()) / "agents")


def _prepare_start(options: ServeOptions) -> tuple[LoadedConfiguration, Settings, DataDirectory]:
    loaded, settings, folder = _load_settings(options)
    return loaded, settings, DataDirectory.open(folder)


def _open_log(options: ServeOptions) -> tuple[DataDirectory, Database]:
    """Open the existing log of these options.

    Raises:
        UserError: There is no log. An empty one in its place would verify without a difference.
    """
    loaded, settings, folder = _load_settings(options)
    url = _database_url(loaded, settings)
    if url is None:
        _require_embedded_log(folder)
    directory = DataDirectory.open(folder)
    return directory, open_database(url, directory.postgres)


def _require_embedded_log(folder: Path | None) -> None:
    chosen = expand_data_directory(folder)
    try:
        is_there = Home.at(chosen / "postgres").data.is_dir()
    except OSError as error:
        raise UserError(
            f"the data directory {chosen} cannot be read: {error.strerror}; run the command as the"
            " user of the server, or name another one with --data-dir"
        ) from error
    if not is_there:
        # A log in an external database is named, with what to do.
        DataDirectory(chosen).require_embedded_log()
        raise UserError(
            f"there is no log in {chosen}; give --data-dir, or, if the log is in another database,"
            " SPAWNLOG_DATABASE_URL or the server's --config"
        )


def _load_settings(options: ServeOptions) -> tuple[LoadedConfiguration, Settings, Path | None]:
    """Return the configuration, the effective settings and the data directory that they name."""
    try:
        loaded = load(_config_path(options))
        settings = _effective_settings(loaded, options)
        folder = data_directory_of(loaded, settings)
    except ConfigurationError as error:
        raise UserError("\n".join(map(str, error.problems))) from error
    return loaded, settings, folder


def _effective_settings(loaded: LoadedConfiguration, options: ServeOptions) -> Settings:
    flags: dict[str, object] = {
        "database_url": options.database_url,
        "data_dir": str(options.data_dir) if options.data_dir else None,
        "host": options.host,
        "port": options.port,
        "no_auth": options.no_auth,
        "no_page": options.no_page,
    }
    try:
        return effective_settings(loaded.configuration.spawnlog, os.environ, flags)
    except ConfigurationError as error:
        raise UserError("\n".join(map(str, error.problems))) from error


def data_directory_of(loaded: LoadedConfiguration, settings: Settings) -> Path | None:
    """Return the folder that the settings name, or None for the user's default.

    Raises:
        ConfigurationError: The file names a folder that cannot be resolved.
    """
    given = settings.data_dir
    if given is None or given != loaded.configuration.spawnlog.data_dir:
        return Path(given) if given else None
    # A shell expands variables in flags and environment; in a file they are unresolved.
    return loaded.path_of(loaded.resolve(given))


def _config_path(options: ServeOptions) -> Path | None:
    if options.config is not None:
        return options.config
    named = os.environ.get(CONFIG_VARIABLE, "").strip()
    return Path(named) if named else None


def _database_url(loaded: LoadedConfiguration, settings: Settings) -> str | None:
    if settings.database_url is None:
        return None
    try:
        return loaded.resolve(settings.database_url)
    except ConfigurationError as error:
        raise UserError(f"the database URL cannot be used: {error}") from error
