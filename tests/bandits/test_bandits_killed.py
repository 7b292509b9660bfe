"""A process that decides and learns is killed again and again: nothing that it had returned is lost."""

import json
import subprocess
import sys
import textwrap

SCRIPT = """
    import json, os, random, signal, sys, time
    import torch
    from torch import nn
    from batchensemble.bandits import ThompsonSampler, Training

    folder, kills, end = sys.argv[1], int(sys.argv[2]), 80

    def live():
        torch.manual_seed(os.getpid())  # another network in every life: the folder's counts
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        if not os.path.exists(folder):
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        sampler = ThompsonSampler(net, members=4, training=Training(every=10, steps=5, batch_size=8), folder=folder)
        with open(folder + ".acknowledged", "a") as said:
            while sampler.observed < end:
                if sampler.awaiting < 4:
                    chance = torch.Generator().manual_seed(sampler.decided)
                    contexts, arms = torch.randn(2, 4, generator=chance), torch.rand(2, 3, generator=chance) > 0.6
                    arms[:, sampler.decided % 2] = True
                    made = sampler.act(contexts, arms if sampler.decided % 3 else None)
                    say = {"decided": made.ids.tolist(), "arms": made.arms.tolist()}
                else:
                    ids = sorted(sampler._ledger.awaiting)[1:3]  # the oldest waits a little longer
                    rewards = [float(i % 7 == sampler._ledger.awaiting[i].arm) for i in ids]
                    sampler.update(ids, rewards)
                    say = {"rewarded": ids}
                said.write(json.dumps(say) + "\\n")
                said.flush()
        torch.save({**sampler._trainer.state(), **sampler._ledger.state()}, folder + ".end")
        os._exit(0)

    random.seed(0)
    done = killed = 0
    while not done:
        child = os.fork()
        if child == 0:
            live()
        if killed < kills:
            time.sleep(random.uniform(0.0, 0.12))
            os.kill(child, signal.SIGKILL)
            killed += 1
        _, status = os.waitpid(child, 0)
        done = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    print(killed)
"""


def lives(folder, kills):
    code = textwrap.dedent(SCRIPT)
    command = [sys.executable, "-c", code, str(folder), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    lines = folder.with_name(folder.name + ".acknowledged").read_text().splitlines()
    return int(done.stdout), [json.loads(line) for line in lines]


def test_killed_at_random_moments(tmp_path):
    import torch

    quiet, _ = lives(tmp_path / "quiet", kills=0)
    killed, said = lives(tmp_path / "killed", kills=15)
    assert (quiet, killed) == (0, 15)
    one, other = (torch.load(tmp_path / f"{name}.end") for name in ("quiet", "killed"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    decided = [number for line in said for number in line.get("decided", [])]
    rewarded = [number for line in said for number in line.get("rewarded", [])]
    assert len(set(decided)) == len(decided)  # no id was ever given out twice
    assert len(set(rewarded)) == len(rewarded)  # no reward had to be given twice
