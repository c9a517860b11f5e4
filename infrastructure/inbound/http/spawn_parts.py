"""The parts of a spawn's body: who asks, and what is attached."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from domain.configuration.models import is_model_name
from domain.context.attachments import (
    MOUNT_PATH_CHARACTERS_MAX,
    RequestedAttachment,
    mount_path_hint,
)
from infrastructure.inbound.http.requests.bodies import Body

NAME_CHARS_MAX = 256
ADDRESS_CHARS_MAX = 1024
ATTACHMENTS_MAX = 1_000

NameField = Annotated[str, Field(max_length=NAME_CHARS_MAX)]
Address = Annotated[str, Field(max_length=ADDRESS_CHARS_MAX)]


class RequesterBody(Body):
    """Who asks, and where it can be answered."""

    session_key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2048,
            description=(
                "Its key in any spelling, its session id, or `current` for the one session that the"
                " token acts for."
            ),
        ),
    ]
    channel: Address | None = None
    account_id: Address | None = None
    to: Address | None = None
    thread_id: Address | int | None = None
    group_id: Address | None = None
    group_channel: Address | None = None
    group_space: Address | None = None
    member_role_ids: Annotated[list[Address], Field(max_length=200)] = Field(default_factory=list)
    agent_id_override: NameField | None = None
    workspace_dir: Annotated[
        str | None,
        Field(
            max_length=4096,
            description=(
                "The folder it works in, as an absolute path: a child of the same agent works there"
                " too. It has to be in its folder on record; without one, in its agent's own or"
                " below `spawnlog.workspaceRoots`."
            ),
        ),
    ] = None
    sandboxed: Annotated[
        bool, Field(description="That it is in a sandbox, also when the record does not say so.")
    ] = False
    active_model: NameField | None = None
    active_thinking: Annotated[str, Field(pattern=r"^[A-Za-z_ -]{1,32}$")] | None = None

    @field_validator("active_model")
    @classmethod
    def _a_model(cls, name: str | None) -> str | None:
        if name is not None and not is_model_name(name):
            raise ValueError("must be the name of a model, such as provider/model")
        return name

    @field_validator("workspace_dir")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        if path is None or not path.strip():
            return None
        if not path.startswith("/") or not path.isprintable():
            raise ValueError("must be an absolute path without control characters")
        return path


class AttachmentBody(Body):
    """A file: its name, and its content as text or as base64."""

    name: Annotated[str, Field(max_length=4096)]
    content: str
    encoding: Literal["utf8", "base64"] = "utf8"
    mime_type: Annotated[str, Field(max_length=255, pattern=r"^[ -~]*$")] | None = None


class AttachAsBody(Body):
    """Where attachments are wanted; a hint that the child is told."""

    mount_path: str | None = None

    @field_validator("mount_path")
    @classmethod
    def _a_hint(cls, path: str | None) -> str | None:
        if path is None or not path.strip():
            return None
        hint = mount_path_hint(path)
        if hint is None:
            raise ValueError(
                f"must be a path of letters, digits and ._-/: with {MOUNT_PATH_CHARACTERS_MAX}"
                " characters at most"
            )
        return hint


def attachment_requests(files: list[AttachmentBody]) -> tuple[RequestedAttachment, ...]:
    """The files in the words of the domain."""
    return tuple(
        RequestedAttachment(
            name=one.name, content=one.content, encoding=one.encoding, mime_type=one.mime_type
        )
        for one in files
    )
