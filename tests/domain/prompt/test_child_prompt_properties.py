"""What holds for every prompt, whatever its child, its task and its surroundings say."""

from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.agents import BootstrapLimits
from domain.context.bootstrap_files import BOOTSTRAP_NAMES, BootstrapFile, select_bootstrap_files
from domain.prompt.child_prompt import AttachmentsNote, ChildFacts, Surroundings, compose_prompt
from domain.prompt.pieces import Contribution, Piece, task_pieces
from domain.values.text import replace_unstorable
from tests.support.tiers import examples

CHILD = ChildFacts(
    depth=1,
    max_spawn_depth=1,
    child_session_key="agent:steward:subagent:1",
    label="reviewer",
    requester_session_key="agent:main:main",
    requester_channel="telegram",
)
text = st.text(alphabet=st.characters(), max_size=15)
# What could be taken for the prompt's own words, among anything else.
words = st.sampled_from(["\n\n", "## Rules\n", "# Sub-agent", "\n\n---\n\n", "Attachments: 9"])
sly = st.lists(text | words, max_size=5).map("".join)
files = st.lists(st.builds(BootstrapFile, st.sampled_from(BOOTSTRAP_NAMES) | text, sly), max_size=3)
notes = st.builds(
    AttachmentsNote,
    count=st.integers(-1, 60),
    total_bytes=st.integers(0, 10**9),
    relative_dir=sly,
    mount_path_hint=st.none() | sly,
)


@examples(60)
@given(
    st.builds(
        ChildFacts,
        depth=st.integers(-1, 4),
        max_spawn_depth=st.integers(0, 4),
        child_session_key=text,
        label=st.none() | text,
        requester_session_key=st.none() | text,
        requester_channel=st.none() | text,
        is_persistent=st.booleans(),
    ),
    text,
    st.lists(st.builds(Contribution, text, text), max_size=2),
    st.builds(
        Surroundings,
        preamble=text,
        bootstrap=files,
        attachments=st.none() | notes,
        shared_context=st.lists(st.builds(Piece, source=text, text=text), max_size=3),
    ),
)
def test_the_parts_cover_every_byte_of_both_texts(
    child: ChildFacts, task: str, scripts: list[Contribution], surroundings: Surroundings
) -> None:
    prompt = compose_prompt(child, task_pieces(task, prepend=scripts), surroundings)
    ends = {"systemPrompt": 0, "message": 0}
    order = [part.of for part in prompt.parts]
    assert order == sorted(order, reverse=True)
    for part in prompt.parts:
        assert part.start == ends[part.of]
        assert part.end > part.start
        ends[part.of] = part.end
    assert ends["systemPrompt"] == len(prompt.system_prompt.encode())
    assert ends["message"] == len(prompt.message.encode())


@examples(60)
@given(files, st.none() | notes)
def test_no_file_and_no_attachment_moves_a_part_that_stands_before_it(
    brought: list[BootstrapFile], note: AttachmentsNote | None
) -> None:
    plain = compose_prompt(CHILD, task_pieces("T"))
    prompt = compose_prompt(
        CHILD, task_pieces("T"), Surroundings(bootstrap=brought, attachments=note)
    )
    ours = [part for part in plain.parts if part.of == "systemPrompt"]
    assert list(prompt.parts[: len(ours)]) == ours
    assert prompt.system_prompt.startswith(plain.system_prompt)
    assert prompt.message == plain.message


@examples(60)
@given(sly.filter(lambda one: one.strip("\n").strip() != ""))
def test_the_part_of_a_file_is_its_heading_and_its_text(said: str) -> None:
    surroundings = Surroundings(bootstrap=(BootstrapFile("TOOLS.md", said),))
    prompt = compose_prompt(CHILD, task_pieces("T"), surroundings)
    (part,) = [one for one in prompt.parts if one.source == "bootstrap:TOOLS.md"]
    held = prompt.system_prompt.encode()[part.start : part.end].decode()
    assert held == replace_unstorable("## TOOLS.md\n\n" + said.strip("\n"))


@examples(60)
@given(files, st.integers(1, 30), st.integers(1, 60))
def test_files_stay_within_their_limits_and_in_order(
    brought: list[BootstrapFile], chars_max: int, total: int
) -> None:
    within = select_bootstrap_files(brought, BootstrapLimits(chars_max, total))
    said = [one for one in brought if one.text.strip()]
    kept = [one.text.partition("\n\n[truncated: ")[0] for one in within.files]
    assert [one.name for one in within.files] == [one.name for one in said][: len(within.files)]
    assert all(was.text.startswith(now) for was, now in zip(said, kept, strict=False))
    assert sum(map(len, kept)) <= total
    assert all(len(one) <= chars_max for one in kept)
