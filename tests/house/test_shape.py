"""The shape of the house: a folder is a capability, a module a concept, a name one type."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = ("domain", "application", "infrastructure", "spawnlog")
MODULES_MIN, MODULES_MAX = 3, 18
MODULES = [
    module
    for floor in FLOORS
    for module in sorted((ROOT / floor).rglob("*.py"))
    if module.name != "__init__.py"
]

SMALL_FOLDERS = {
    "application/configuration": "one use case: a file becomes the active revision",
    "domain": "the registry of event types belongs to no one of its folders",
    "infrastructure/inbound/command_line": "the entry point; its parts are folders",
    "infrastructure/outbound/guarded_http": "what adapters share that call others' addresses",
    "infrastructure/outbound/hooks": "the adapters of two ports",
    "infrastructure/outbound/log": "the adapter of the log's port and a process beside it",
    "infrastructure/outbound/otlp": "the adapter of one port, whose library is an extra",
}

NOUNS_IN_ING = {
    "logging": "the field's noun",
    "paging": "the field's noun",
    "path_encoding": "the field's noun",
    "thinking": "what a model does, and the name of a recorded field",
    "thread_binding": "the field's noun, and the name of a recorded step",
}


def test_a_folder_has_as_many_modules_as_one_can_oversee() -> None:
    sizes = Counter(str(module.parent.relative_to(ROOT)) for module in MODULES)
    odd = {folder for folder, size in sizes.items() if not MODULES_MIN <= size <= MODULES_MAX}
    assert odd == set(SMALL_FOLDERS), {folder: sizes[folder] for folder in odd}


def test_no_module_is_a_gerund() -> None:
    named = {module.stem for module in MODULES if module.stem.endswith("ing")}
    assert named == set(NOUNS_IN_ING)


def test_no_type_is_defined_twice() -> None:
    """Classes, private ones too, and aliases of types."""
    defined = Counter[str]()
    for module in MODULES:
        for node in ast.parse(module.read_text("utf-8")).body:
            match node:
                case ast.ClassDef(name=name):
                    defined[name] += 1
                case ast.Assign(targets=[ast.Name(id=name)]) if _is_name_of_a_type(name):
                    defined[name] += 1
                case _:
                    pass
    assert [name for name, times in defined.items() if times > 1] == []


def _is_name_of_a_type(name: str) -> bool:
    """`Pool`, and neither `POOL` nor `T`."""
    return name[:1].isupper() and len(name) > 1 and not name.isupper() and "_" not in name
