"""Mapper between events and stored bytes, built on eventsourcing's mapper and our registry of
types.

The library's own mapper stores class names and imports the class that a row names. Ours stores
`Name:version` from a closed registry, so a row can never name code.
"""

from collections.abc import Callable, Mapping
from typing import cast

import orjson
from eventsourcing.persistence import Cipher, Compressor, JSONTranscoder, Mapper, StoredEvent

from domain.event_types import EVENT_TYPES, TYPE_OF, UPCASTS, AnyEvent, Upcasts, upcast_event
from domain.values.record import Event, decoder_of
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.codec.numbers import require_finite


class EventMapper(Mapper[str]):
    """Mapper between events and stored events, with eventsourcing's optional compression and
    cipher."""

    def __init__(
        self,
        compressor: Compressor | None = None,
        cipher: Cipher | None = None,
        *,
        event_types: Mapping[tuple[str, int], type[Event]] = EVENT_TYPES,
        upcasts: Upcasts = UPCASTS,
    ) -> None:
        super().__init__(JSONTranscoder(), compressor, cipher)
        self._event_types = event_types
        self._upcasts = upcasts
        self._decode: Mapping[tuple[str, int], Callable[[bytes], AnyEvent]] = {
            name: decoder_of(cls) for name, cls in event_types.items() if name not in upcasts
        }
        self._is_plain = not (self.compressor or self.cipher)

    def store(self, stream: str, version: int, event: AnyEvent) -> StoredEvent:
        """Return the stored event: JSON with camelCase names."""
        name, number = TYPE_OF[type(event)]
        return StoredEvent(stream, version, f"{name}:{number}", self.state(event))

    def state(self, event: AnyEvent) -> bytes:
        """Return the bytes to store for an event.

        Raises:
            ValueError: A value has no JSON form: an unpaired surrogate, NaN or infinity, or a type
                other than its class declares.
        """
        try:
            require_finite(event)
            state = event.to_json()
        except (TypeError, ValueError) as error:
            raise ValueError(f"{type(event).__name__} cannot be recorded: {error}") from error
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return state

    def load(self, stored: StoredEvent) -> AnyEvent:
        """Decode a stored event, upcast to its newest version.

        Raises:
            CorruptHistoryError: Its type is unknown or its content does not fit the type.
        """
        name, _, number = stored.topic.rpartition(":")
        version = int(number) if number.isdecimal() else 0
        try:
            payload = self.payload(stored.state)
            if (name, version) in self._upcasts:
                version, raw = upcast_event(name, version, payload_object(payload), self._upcasts)
                payload = orjson.dumps(raw)
            cls = self._event_types.get((name, version))
            event = cls.from_json(payload) if cls is not None else None
        except Exception as error:
            # Any exception: ciphers and compressors raise errors of their own on foreign bytes.
            raise CorruptHistoryError(
                f"version {stored.originator_version} of {stored.originator_id} is not a"
                f" {stored.topic}: {error}"
            ) from error
        if event is None:
            raise CorruptHistoryError(
                f"event type {stored.topic} is unknown here; this log needs a newer spawnlog"
            )
        return cast("AnyEvent", event)

    def event(self, stream: str, version: int, name: str, number: int, state: bytes) -> AnyEvent:
        """Decode an event from the parts of a stored event, like `load`."""
        try:
            # Shortcut of `load` for events of the newest version.
            return self._decode[name, number](state if self._is_plain else self.payload(state))
        except Exception:
            # `load` upcasts older versions and raises precise errors.
            return self.load(StoredEvent(stream, version, f"{name}:{number}", state))

    def payload(self, state: bytes) -> bytes:
        """Return the JSON text of stored bytes."""
        if self.cipher:
            state = self.cipher.decrypt(state)
        if self.compressor:
            state = self.compressor.decompress(state)
        return state


def payload_object(payload: bytes) -> dict[str, object]:
    return cast("dict[str, object]", orjson.loads(payload))
