"""The factory that the library looks for:

    PERSISTENCE_MODULE=infrastructure.outbound.eventsourcing_log.factory

Events are recorded in a log of our making, in a schema of the application's own; snapshots and
tracking in tables of the library's own making beside it. See `docs/eventsourcing.md`.
"""

from types import TracebackType
from typing import TypeVar

# Not its factory by name: the library wants to find exactly one in this module.
from eventsourcing import postgres
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    InfrastructureFactoryError,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic, strtobool

from infrastructure.outbound.eventsourcing_log.recorder import (
    LogApplicationRecorder,
    LogProcessRecorder,
)
from infrastructure.outbound.eventsourcing_log.schema import prepare_log, prepare_schema
from infrastructure.outbound.eventsourcing_log.settings import LogDatastore, settings_of

CREATE_TABLE = "CREATE_TABLE"

T = TypeVar("T")


class LogFactory(InfrastructureFactory[postgres.PostgresTrackingRecorder]):
    """Makes recorders for one application. `OSError` when its environment says too little."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        self.datastore = LogDatastore(settings_of(self.env))

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()
        super().__exit__(exc_type, exc_val, exc_tb)

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """For snapshots: a table `<application>_<purpose>` of the library's own."""
        prepare_schema(self.datastore, may_create=self._may_create)
        recorder = postgres.PostgresAggregateRecorder(
            self.datastore, events_table_name=f"{self._prefix('stored')}_{purpose}"
        )
        if self._may_create:
            recorder.create_table()
        return recorder

    def application_recorder(self) -> ApplicationRecorder:
        """The log. `NotSupportedError` when the schema holds the log of somebody else."""
        chosen = self._class(self.APPLICATION_RECORDER_TOPIC, LogApplicationRecorder)
        self._prepare_log()
        return chosen(self.datastore)

    def tracking_recorder(
        self,
        tracking_recorder_class: type[postgres.PostgresTrackingRecorder] | None = None,
    ) -> postgres.PostgresTrackingRecorder:
        """For views that follow an application: a table `<application>_tracking`."""
        chosen = tracking_recorder_class or self._class(
            self.TRACKING_RECORDER_TOPIC, postgres.PostgresTrackingRecorder
        )
        prepare_schema(self.datastore, may_create=self._may_create)
        recorder = chosen(self.datastore, tracking_table_name=self._tracking_table)
        if self._may_create:
            recorder.create_table()
        return recorder

    def process_recorder(self) -> ProcessRecorder:
        """The log, and tracking beside it."""
        chosen = self._class(self.PROCESS_RECORDER_TOPIC, LogProcessRecorder)
        self._prepare_log()
        recorder = chosen(self.datastore, tracking_table_name=self._tracking_table)
        if self._may_create:
            recorder.create_table()
        return recorder

    def close(self) -> None:
        """Close every connection."""
        self.datastore.close()

    @property
    def _may_create(self) -> bool:
        return bool(strtobool(self.env.get(CREATE_TABLE) or "yes"))

    @property
    def _tracking_table(self) -> str:
        return f"{self._prefix('notification')}_tracking"

    def _prefix(self, otherwise: str) -> str:
        return self.env.name.lower() or otherwise

    def _prepare_log(self) -> None:
        prepare_log(self.datastore, self.env.name, may_create=self._may_create)

    def _class(self, variable: str, otherwise: type[T]) -> type[T]:
        """The class that a variable names, which must be a kind of the usual one."""
        topic = self.env.get(variable)
        if not topic:
            return otherwise
        found = resolve_topic(topic)
        if not (isinstance(found, type) and issubclass(found, otherwise)):
            raise InfrastructureFactoryError(f"{variable} must name a kind of {otherwise.__name__}")
        return found
