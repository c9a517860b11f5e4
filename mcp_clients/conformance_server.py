"""`spawnlog serve` with the tools, prompts and resources of the conformance suite beside its own:
`python -m mcp_clients.conformance_server serve ...`.

Everything between the socket and a tool is the product's: guard, tokens, endpoint, session manager,
tasks. Only what a name is answered with comes from here; a tool that makes a task is
`sessions_spawn` under the name that the suite knows.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

import infrastructure.inbound.mcp.server as product
from infrastructure.inbound.command_line.main import main
from infrastructure.inbound.mcp.tasks import RequestContext
from mcp_clients.conformance import ECHO, FAILING, SLOW

Params = types.CallToolRequestParams | types.GetPromptRequestParams
PAUSE_SECONDS = 0.05
TEXT = "text/plain"
STRING = {"type": "string"}
NAME_FORM = {"type": "object", "properties": {"name": STRING}, "required": ["name"]}
COLOR_FORM = {"type": "object", "properties": {"color": STRING}, "required": ["color"]}
OK_FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
_KEY = secrets.token_bytes(32)


def _png() -> str:
    """Return the picture of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")))
    image = b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")
    return base64.b64encode(image).decode()


def _wav() -> str:
    """Return a wave file without samples."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", 0)
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _image() -> types.ImageContent:
    return types.ImageContent(type="image", data=_png(), mime_type="image/png")


def _embedded(uri: str, text: str, mime_type: str = TEXT) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource",
        resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text),
    )


CONTENTS: Mapping[str, list[types.ContentBlock]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_image()],
    "test_audio_content": [
        types.AudioContent(type="audio", data=_wav(), mime_type="audio/wav")
    ],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _image(),
        _embedded(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ],
    "json_schema_2020_12_tool": [_text("seen")],
}  # fmt: skip
"""The tools that answer the same to everybody."""

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

RESOURCES: Mapping[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type=TEXT,
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=_png()
    ),
}
TEMPLATE = "test://template/{id}/data"


def _templated(uri: str) -> types.TextResourceContents | None:
    before, _, after = TEMPLATE.partition("{id}")
    if not uri.startswith(before) or not uri.endswith(after):
        return None
    found = uri.removeprefix(before).removesuffix(after)
    text = json.dumps({"id": found, "templateTest": True, "data": f"Data for ID: {found}"})
    return types.TextResourceContents(uri=uri, mime_type="application/json", text=text)


@dataclass(frozen=True)
class Ask:
    """Requests to a client in place of a result, and the handling of its answers."""

    requests: Mapping[str, Any]
    state: str | None = None
    """Given to the client, signed, and asked back."""
    then: "Ask | None" = None


def _form(message: str, schema: dict[str, Any]) -> Any:
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def _sampling(text: str, tokens_max: int) -> Any:
    message = types.SamplingMessage(role="user", content=_text(text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens_max)
    )


def _roots() -> Any:
    return types.ListRootsRequest()


NAME_ASKED = Ask({"user_name": _form("What is your name?", NAME_FORM)})
ASKS: Mapping[str, Ask] = {
    "test_input_required_result_elicitation": NAME_ASKED,
    "test_input_required_result_sampling": Ask(
        {"capital_question": _sampling("What is the capital of France?", 100)}
    ),
    "test_input_required_result_list_roots": Ask({"client_roots": _roots()}),
    "test_input_required_result_request_state": Ask(
        {"confirm": _form("Please confirm", OK_FORM)}, "state"
    ),
    "test_input_required_result_tampered_state": Ask(
        {"confirm": _form("Please confirm", OK_FORM)}, "untouched"
    ),
    "test_input_required_result_multiple_inputs": Ask(
        {
            "user_name": _form("What is your name?", NAME_FORM),
            "greeting": _sampling("Generate a greeting", 50),
            "client_roots": _roots(),
        },
        "all",
    ),
    "test_input_required_result_multi_round": Ask(
        {"step1": _form("Step 1: What is your name?", NAME_FORM)},
        "round-1",
        Ask({"step2": _form("Step 2: What is your favorite color?", COLOR_FORM)}, "round-2"),
    ),
    "test_input_required_result_capabilities": Ask(
        {
            "user_name": _form("What is your name?", NAME_FORM),
            "greeting": _sampling("Generate a greeting", 50),
        }
    ),
    "test_streaming_elicitation": NAME_ASKED,
}
_NEEDS: Mapping[str, types.ClientCapabilities] = {
    "elicitation/create": types.ClientCapabilities(elicitation=types.ElicitationCapability()),
    "sampling/createMessage": types.ClientCapabilities(sampling=types.SamplingCapability()),
    "roots/list": types.ClientCapabilities(roots=types.RootsCapability()),
}


def _signed(state: str) -> str:
    return f"{state}.{hmac.new(_KEY, state.encode(), hashlib.sha256).hexdigest()}"


def _asked(
    ask: Ask, context: RequestContext, params: Params
) -> types.InputRequiredResult | dict[str, Any]:
    """Return the requests of `ask`, or its answers if all are given."""
    given = params.input_responses or {}
    if params.request_state is not None:
        state = params.request_state.rpartition(".")[0]
        if not hmac.compare_digest(params.request_state, _signed(state)):
            raise MCPError(types.INVALID_PARAMS, "requestState is not as it was given")
        while ask.then is not None and ask.state != state:
            ask = ask.then
        if ask.then is not None and ask.requests.keys() <= given.keys():
            ask, given = ask.then, {}
    if given and ask.requests.keys() <= given.keys():
        answers = {name: given[name] for name in ask.requests}
        return {name: one.model_dump(mode="json") for name, one in answers.items()}
    return types.InputRequiredResult(
        input_requests={
            name: one
            for name, one in ask.requests.items()
            if context.session.check_client_capability(_NEEDS[one.method])
        },
        request_state=_signed(ask.state) if ask.state is not None else None,
    )


Result = types.CallToolResult | types.InputRequiredResult | dict[str, Any]
Tool = Callable[[RequestContext, types.CallToolRequestParams], Awaitable[Result]]


def _done(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(text)])


async def _log(context: RequestContext, *_: Any) -> types.CallToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await asyncio.sleep(PAUSE_SECONDS)
    return _done("logged")


async def _progress(context: RequestContext, *_: Any) -> types.CallToolResult:
    for progress in (0, 50, 100):
        await context.session.report_progress(progress, 100)
        await asyncio.sleep(PAUSE_SECONDS)
    return _done("reported")


async def _fail(*_: Any) -> types.CallToolResult:
    text = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[_text(text)], is_error=True)


async def _sample(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    message = types.SamplingMessage(role="user", content=_text(_argument(params, "prompt")))
    answer = await context.session.create_message(
        [message], max_tokens=100, related_request_id=context.request_id
    )
    return _done(f"LLM response: {answer.content}")


def _elicit(schema: dict[str, Any]) -> Tool:
    async def ask(context: RequestContext, params: types.CallToolRequestParams) -> Result:
        answer = await context.session.elicit_form(
            str((params.arguments or {}).get("message", "Please answer")),
            schema,
            context.request_id,
        )
        return _done(f"Elicitation completed: action={answer.action}, content={answer.content}")

    return ask


async def _reconnect(context: RequestContext, *_: Any) -> types.CallToolResult:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(PAUSE_SECONDS)
    return _done("Reconnection test completed successfully")


async def _need_sampling(context: RequestContext, *_: Any) -> types.CallToolResult:
    needed = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not context.session.check_client_capability(needed):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs sampling",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return _done("sampling is there")


async def _greet(_: RequestContext, params: types.CallToolRequestParams) -> Result:
    return _done(f"Hello, {_argument(params, 'name')}!")


def _argument(params: types.CallToolRequestParams, name: str) -> str:
    return str((params.arguments or {}).get(name, ""))


ANSWERS: Mapping[str, Tool] = {
    "test_tool_with_logging": _log,
    "test_logging_tool": _log,
    "test_tool_with_progress": _progress,
    "test_error_handling": _fail,
    "test_sampling": _sample,
    "test_elicitation": _elicit(NAME_FORM),
    "test_elicitation_sep1034_defaults": _elicit(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": {"type": "boolean", "default": True},
            },
        }
    ),
    "test_elicitation_sep1330_enums": _elicit(
        {
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
        }
    ),
    "test_reconnection": _reconnect,
    "test_missing_capability": _need_sampling,
    "greet": _greet,
}

SPAWNING: Mapping[str, Callable[[types.CallToolRequestParams], dict[str, Any]]] = {
    "slow_compute": lambda params: {
        "agentId": f"{SLOW}-{int(float(_argument(params, 'seconds') or 0))}",
        "task": _argument(params, "label") or "compute",
    },
    "failing_job": lambda _: {"agentId": FAILING, "task": "fail"},
}
"""The tools that make a task, and what of `sessions_spawn` they are."""

FOLLOWED = "failing_job"
"""Wants a client that follows tasks."""

ESCALATING = "test_tool_with_task"
"""Asks for a name, then spawns."""

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
CONTEXT_ASKED = Ask(
    {
        "user_context": _form(
            "What context should the prompt use?",
            {"type": "object", "properties": {"context": STRING}, "required": ["context"]},
        )
    }
)


def _prompt_contents(name: str, given: Mapping[str, str]) -> list[types.ContentBlock]:
    match name:
        case "test_simple_prompt":
            return [_text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            arguments = f"arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            return [_text(f"Prompt with arguments: {arguments}")]
        case "test_prompt_with_embedded_resource":
            uri = given.get("resourceUri", "")
            embedded = _embedded(uri, "Embedded resource content for testing.")
            return [embedded, _text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [_image(), _text("Please analyze the image above.")]
        case _:
            raise MCPError(types.INVALID_PARAMS, "there is no prompt of that name")


_OWN = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


class SuiteAnswers:
    """Answers for the names of the suite; the product answers for its own."""

    def __init__(
        self, server: Server[Any], require_tasks: Callable[[RequestContext], None]
    ) -> None:
        self._require_tasks = require_tasks
        own = {method: server.get_request_handler(method) for method in _OWN}
        self._own: dict[str, Callable[..., Awaitable[Any]]] = {
            method: entry.handler for method, entry in own.items() if entry is not None
        }
        page = types.PaginatedRequestParams
        server.add_request_handler("tools/list", page, self._tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, self._call)
        server.add_request_handler("resources/list", page, self._resources)
        server.add_request_handler("resources/templates/list", page, self._templates)
        server.add_request_handler("resources/read", types.ReadResourceRequestParams, self._read)
        server.add_request_handler("prompts/list", page, _prompts)
        server.add_request_handler("prompts/get", types.GetPromptRequestParams, _prompt)
        server.add_request_handler("completion/complete", types.CompleteRequestParams, _complete)

    async def _tools(self, context: RequestContext, params: Any) -> types.ListToolsResult:
        own = await self._own["tools/list"](context, params)
        names = (*CONTENTS, *ANSWERS, *ASKS, *SPAWNING, ESCALATING)
        schemas = {"json_schema_2020_12_tool": SCHEMA_2020_12}
        added = [
            types.Tool(
                name=name,
                description="of the conformance suite",
                input_schema=schemas.get(name, {"type": "object"}),
            )
            for name in names
        ]
        return types.ListToolsResult(tools=[*own.tools, *added])

    async def _call(self, context: RequestContext, params: types.CallToolRequestParams) -> Any:
        name = params.name
        if name in CONTENTS:
            return types.CallToolResult(content=CONTENTS[name])
        if name in ANSWERS:
            return await ANSWERS[name](context, params)
        if name in ASKS:
            answers = _asked(ASKS[name], context, params)
            if isinstance(answers, types.InputRequiredResult):
                return answers
            return _done(f"state-ok {json.dumps(answers)}")
        if name == FOLLOWED:
            self._require_tasks(context)
        if name in SPAWNING:
            return await self._spawned(context, SPAWNING[name](params))
        if name == ESCALATING:
            answers = _asked(NAME_ASKED, context, params)
            if isinstance(answers, types.InputRequiredResult):
                return answers
            return await self._spawned(context, {"agentId": ECHO, "task": json.dumps(answers)})
        return await self._own["tools/call"](context, params)

    async def _spawned(self, context: RequestContext, arguments: dict[str, Any]) -> Any:
        spawn = types.CallToolRequestParams(name="sessions_spawn", arguments=arguments)
        return await self._own["tools/call"](context, spawn)

    async def _resources(self, context: RequestContext, params: Any) -> types.ListResourcesResult:
        own = await self._own["resources/list"](context, params)
        added = [
            types.Resource(
                uri=uri, name=uri, description="of the conformance suite", mime_type=one.mime_type
            )
            for uri, one in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=[*added, *own.resources])

    async def _templates(
        self, context: RequestContext, params: Any
    ) -> types.ListResourceTemplatesResult:
        own = await self._own["resources/templates/list"](context, params)
        added = types.ResourceTemplate(uri_template=TEMPLATE, name="of the conformance suite")
        return types.ListResourceTemplatesResult(
            resource_templates=[*own.resource_templates, added]
        )

    async def _read(self, context: RequestContext, params: types.ReadResourceRequestParams) -> Any:
        found = RESOURCES.get(params.uri) or _templated(params.uri)
        if found is not None:
            return types.ReadResourceResult(contents=[found])
        return await self._own["resources/read"](context, params)


async def _prompts(_context: RequestContext, _: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description="of the conformance suite",
                arguments=[types.PromptArgument(name=one, required=True) for one in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def _prompt(
    context: RequestContext, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name == "test_input_required_result_prompt":
        answers = _asked(CONTEXT_ASKED, context, params)
        if isinstance(answers, types.InputRequiredResult):
            return answers
        contents: list[types.ContentBlock] = [_text(json.dumps(answers))]
    else:
        contents = _prompt_contents(params.name, params.arguments or {})
    messages = [types.PromptMessage(role="user", content=one) for one in contents]
    return types.GetPromptResult(messages=messages)


async def _complete(
    _context: RequestContext, params: types.CompleteRequestParams
) -> types.CompleteResult:
    begun = params.argument.value
    values = [one for one in ("paris", "park", "party") if one.startswith(begun)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values)))


class ServedMethods(product.McpMethods):
    """The product's methods, with the answers for the suite laid over them."""

    def server(self) -> Server[Any]:
        server = super().server()
        SuiteAnswers(server, self._tasks.require)
        return server


if __name__ == "__main__":
    product.McpMethods = ServedMethods  # type: ignore[misc]
    main()
