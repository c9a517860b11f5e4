"""What a server costs, told from what the system counts."""

from benchmarks.processor import ProcessUse, process_use, tree_seconds
from benchmarks.standing import growth_bytes

STAT = "41 (a (strange) name) S 7 41 41 0 -1 4194304 9 9 0 0 150 50 25 75 20 0 8 0 1 2 3"


def test_a_process_has_used_what_it_and_its_ended_children_did() -> None:
    assert process_use(STAT, 100) == ProcessUse(7, 3.0)


def test_a_server_has_used_what_everything_below_it_did() -> None:
    processes = {
        1: ProcessUse(0, 100.0),
        7: ProcessUse(1, 1.0),
        41: ProcessUse(7, 0.5),
        42: ProcessUse(41, 0.25),
        8: ProcessUse(1, 50.0),
    }
    assert tree_seconds(processes, 7) == 1.75
    assert tree_seconds(processes, 99) == 0.0


def test_memory_grows_by_what_the_second_half_of_the_runs_added() -> None:
    samples = [(100, 50.0), (200, 90.0), (300, 100.0), (400, 100.5), (500, 101.0)]
    assert growth_bytes(samples) == round(2**20 / 200, 1)
    assert growth_bytes(samples[:1]) is None
