"""A process killed before any of its changes to the disk leaves the old learner or the new one."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = """
    import json, os, shutil, signal, sys, warnings
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    import torch
    from small_tasks import QUICK, data, net
    from batchensemble.lifelong import Learner

    torch.set_num_threads(1)
    warnings.filterwarnings("error", ".*another training")
    place, action = Path(sys.argv[2]), sys.argv[3]
    base, work, file = place / "base", place / "work", place / "task"

    def opened(folder):
        return Learner(net(), head=32, folder=folder, training=QUICK)

    def answers(folder):
        learner = opened(folder)
        return {name: learner(data(9)[0], name).flatten().tolist() for name in learner.tasks}

    def learn_first(): opened(work).learn(data(0), "a")
    def learn_together(): opened(work).learn_together({"c": data(2), "d": data(3)})
    def load_task(): opened(work).load_task(file, "copy")
    def forget(): opened(work).forget("b")
    def save(): other.save(work)

    other = Learner(net(3), head=32, training=QUICK, seed=3)
    if action != "learn_first":
        learner = opened(base)
        for seed, name in enumerate("ab"):
            learner.learn(data(seed), name)
            other.learn(data(seed + 5), name)
        other.learn(data(7), "c")
        learner.save_task("a", file)
    base.mkdir(exist_ok=True)
    act = globals()[action]

    def killed_at(limit):
        '''Act in a process that is killed before its change to the disk of that number; whether it was.'''
        child = os.fork()
        if child == 0:
            count = 0
            def counted(change):
                def counting(*args, **kwargs):
                    nonlocal count
                    if count == limit:
                        os.kill(os.getpid(), signal.SIGKILL)
                    count += 1
                    return change(*args, **kwargs)
                return counting
            for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync"):
                setattr(os, name, counted(getattr(os, name)))
            act()
            os._exit(0)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])

    def afresh():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)

    old = answers(base)
    afresh()
    act()
    new = answers(work)
    assert old != new
    found = {"old": 0, "new": 0}
    while True:
        afresh()
        if not killed_at(sum(found.values())):
            break
        left = answers(work)
        assert left in (old, new), (action, found, list(left))
        found["new" if left == new else "old"] += 1
        if left == old:
            act()  # again, by another process
        assert answers(work) == new, (action, found)
        opened(work).learn(data(8), "later")
        assert not (work / ".new").exists()
    print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("action", ["learn_first", "learn_together", "load_task", "forget", "save"])
def test_killed_before_every_change_to_the_disk(tmp_path: Path, action: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(Path(__file__).parent), str(tmp_path), action]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["old"] > 1
    assert found["new"] > 1 or action == "forget", "its last change is the one that counts"
