"""A stream of tasks becomes a record, also after a kill."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from batchensemble.lab.methods.lifelong import DEN, RCL, BatchEnsemble, Finetune, Method, Separate, resnet50_trunk
from batchensemble.lab.records import Run
from batchensemble.lab.studies.lifelong import LIFELONG, Settings, study
from batchensemble.lab.studies.lifelong.study import run
from batchensemble.lab.studies.study import Context
from batchensemble.lifelong import Learner
from batchensemble.locks import Busy, locked

QUICK = Settings(data="figures", classes=10, tasks=3, network="lenet", epochs=1, batch=32, lr=0.02)


def settings(**changes: object) -> dict[str, object]:
    return Settings(**{**vars(QUICK), **changes}).settings()


def asked(**changes: object) -> Run:
    return Run("lifelong", settings(**changes), "smoke")


def test_settings_travel_as_json() -> None:
    for chosen in (Finetune(), BatchEnsemble(rank=2), RCL(trials=3)):
        values = json.loads(json.dumps(settings(method=chosen)))
        assert Settings.of(values).method == chosen
    with pytest.raises(ValueError, match="network must be one of lenet, resnet18, resnet50; got 'vgg'"):
        Settings(network="vgg")


def test_a_record_says_what_is_known_and_what_it_cost(tmp_path: Path) -> None:
    record = LIFELONG.run(asked(method=BatchEnsemble()), Context(work=tmp_path, device="cpu"))
    found = record.metrics
    assert [len(row) for row in found["matrix"]] == [3, 3, 3]
    assert found["matrix"][0][1:] == [None, None]
    assert found["matrix"][2][0] == found["matrix"][0][0], "nothing is forgotten"
    assert found["forgetting"] == 0
    assert found["average_accuracy"] == pytest.approx(sum(found["matrix"][2]) / 3)
    assert found["task_accuracy"] == pytest.approx([found["matrix"][i][i] for i in range(3)], abs=1e-5)
    assert len(found["seen_accuracy"]) == 3
    assert found["growth_tasks"] == [1, 2, 3]
    heads = 84 * 10 + 10
    fast = (3 + 6) + (6 + 16) + (400 + 120) + (120 + 84)
    biases = 6 + 16 + 120 + 84
    plain = 61706 + 2 * 6 * 25 - 850  # three channels instead of one, without its head
    assert found["parameters"] == plain - biases + 3 * (heads + fast + biases)
    assert found["operations"] > 0


def test_a_course_that_was_killed_goes_on(tmp_path: Path) -> None:
    context, whole = Context(work=tmp_path / "a", device="cpu"), asked(method=Separate())
    expected = run(whole, context).metrics

    class Killed(BaseException):
        pass

    class Deadly:
        def __init__(self) -> None:
            self.tasks = 0

        def start(self, name: str, total: int, done: int = 0) -> None: ...

        def end(self) -> None: ...

        def advance(self, note: str = "") -> None:
            self.tasks += 1
            if self.tasks == 2:
                raise Killed

    with pytest.raises(Killed):
        run(whole, Context(work=tmp_path / "b", device="cpu", progress=Deadly()))
    trainings = tmp_path / "b" / "lifelong" / whole.key / "trainings"
    before = {path.name: path.stat().st_mtime_ns for path in trainings.iterdir()}
    found = run(whole, Context(work=tmp_path / "b", device="cpu")).metrics
    assert found["matrix"] == expected["matrix"]
    assert found["operations"] == expected["operations"]
    assert len(before) == 4, "two trainings, and what they took"
    assert {name: (trainings / name).stat().st_mtime_ns for name in before} == before, "they were not trained again"


@pytest.mark.parametrize("chosen", [BatchEnsemble(), DEN(share=0.25)], ids=["batch_ensemble", "den"])
def test_a_task_that_was_learnt_and_not_yet_noted_is_recorded_in_full(chosen: Method, tmp_path: Path) -> None:
    wanted, context = asked(method=chosen, tasks=2), Context(work=tmp_path, device="cpu")
    expected = run(wanted, context).metrics
    diary = tmp_path / "lifelong" / wanted.key / "diary.jsonl"
    diary.write_text("".join(diary.read_text().splitlines(keepends=True)[:1]))
    found = run(wanted, context).metrics
    for name in ("operations", "growth_operations", "train_accuracy", "matrix"):
        assert found[name] == expected[name]


def test_a_diary_whose_last_line_was_cut_off_is_read_and_written_on(tmp_path: Path) -> None:
    context = Context(work=tmp_path, device="cpu")
    expected = run(asked(), context).metrics
    diary = tmp_path / "lifelong" / asked().key / "diary.jsonl"
    whole = diary.read_text()
    diary.write_text(whole[:-20])
    found = run(asked(), context).metrics
    assert found["operations"] == expected["operations"]
    lines = diary.read_text().splitlines()
    assert len(lines) == 3
    assert lines[:2] == whole.splitlines()[:2]


def test_a_course_on_a_gpu_begins_with_a_peak_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened(Exception):
        pass

    def opened(*_: object, **__: object) -> None:
        raise Opened

    reset: list[torch.device] = []
    gpu = torch.device("cuda")
    monkeypatch.setattr(study, "start_fabric", lambda *_: SimpleNamespace(device=gpu))
    monkeypatch.setattr(study, "open_stream", opened)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    with pytest.raises(Opened):
        run(asked(), Context(work=tmp_path, device="cuda"))
    assert reset == [gpu]


@pytest.mark.gpu
def test_memory_that_was_used_before_a_course_is_not_its_own(tmp_path: Path) -> None:
    torch.empty(2**30, dtype=torch.uint8, device="cuda")
    found = run(asked(), Context(work=tmp_path, device="cuda")).metrics
    assert 0 < found["peak_memory"] < 2**29


def test_two_processes_never_write_the_same_course(tmp_path: Path) -> None:
    """Their records may lie in different folders."""
    held, done = threading.Event(), threading.Event()

    def other() -> None:
        with locked(tmp_path / "lifelong" / asked().key):
            held.set()
            done.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    held.wait(20)
    try:
        with pytest.raises(Busy, match="another process is working on"):
            run(asked(), Context(work=tmp_path, device="cpu"))
    finally:
        done.set()
        thread.join()


def test_asking_about_new_tasks_only_leaves_no_matrix(tmp_path: Path) -> None:
    found = run(asked(ask="new"), Context(work=tmp_path, device="cpu")).metrics
    assert "matrix" not in found
    assert len(found["task_accuracy"]) == 3


def test_a_hundred_tasks_on_resnet_50_have_the_papers_thirty_million_parameters() -> None:
    with torch.device("meta"):
        trunk = resnet50_trunk(None)
        learner = Learner(trunk, trunk.features, norm="statistics")
        learner.network.ensemble.add_members(99, like=0)
        head = torch.nn.Linear(trunk.features, 10)
    tasks = sum(p.numel() for p in learner.parameters()) + 100 * sum(p.numel() for p in head.parameters())
    assert tasks == 23_508_032 + 100 * (49_091 + 20_490) == 30_466_132
    vanilla = sum(p.numel() for p in trunk.parameters()) + 100 * 20_490
    assert vanilla == 25_557_032
    assert tasks / vanilla == pytest.approx(1.2, abs=0.01)
