"""Files: whole or not there; a member's file fits the weights that it was trained on, and no others."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from ensembles import M, convnet, ensemble, images, mlp, rows
from safetensors.torch import load_file, save_file
from torch import nn

import batchensemble as be
from batchensemble import files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a file.safetensors"


# ---- bad files -------------------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    ensemble().save(path)
    path.write_bytes(path.read_bytes()[:-20])


def cut_in_the_header(path: Path) -> None:
    ensemble().save(path)
    path.write_bytes(path.read_bytes()[:30])


BAD: dict[str, tuple[Any, str]] = {
    "empty": (lambda path: path.write_bytes(b""), "damaged, or not a safetensors file"),
    "text": (lambda path: path.write_text("hello, this is not it"), "damaged, or not a safetensors file"),
    "pickle": (lambda path: torch.save({"a": torch.ones(1)}, path), r"written by torch.save.*load_state_dict"),
    "truncated": (truncated, "damaged, or not a safetensors file"),
    "header cut": (cut_in_the_header, "damaged, or not a safetensors file"),
    "foreign": (lambda path: save_file({"a": torch.ones(1)}, path), "was not written by batchensemble"),
    "foreign metadata": (lambda path: save_file({"a": torch.ones(1)}, path, {"format": "pt"}), "was not written by"),
    "no JSON": (lambda path: save_file({"a": torch.ones(1)}, path, {"batchensemble": "{"}), "damaged: its header"),
    "no fields": (lambda path: save_file({"a": torch.ones(1)}, path, {"batchensemble": "[]"}), "damaged: its header"),
    "the future": (
        lambda path: save_file({}, path, {"batchensemble": json.dumps({"format": 9, "kind": "ensemble"})}),
        "has format 9, this version reads 1",
    ),
    "an older format": (
        lambda path: save_file({}, path, {"batchensemble": json.dumps({"format": 0, "kind": "ensemble"})}),
        "has format 0, this version reads 1",
    ),
    "a member": (lambda path: ensemble().save_member(0, path), "holds one member, expected one ensemble"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_and_named(path: Path, name: str) -> None:
    make, message = BAD[name]
    make(path)
    with pytest.raises(ValueError, match=message) as error:
        be.load(path, mlp())
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["empty", "truncated", "foreign"])
def test_a_bad_member_file_changes_nothing(path: Path, name: str) -> None:
    BAD[name][0](path)
    model = ensemble()
    with pytest.raises(ValueError, match=r"damaged|not written"):
        model.load_member(path)
    assert len(model) == M


def test_an_ensemble_is_no_member(path: Path) -> None:
    ensemble().save(path)
    with pytest.raises(ValueError, match="holds one ensemble, expected one member"):
        ensemble().load_member(path)


def test_no_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        be.load(path, mlp())


# ---- whole or not there ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["net.0.weight", "net.2.r", "net.0.bias"])
def test_nan_is_refused_and_the_old_file_stays(path: Path, where: str) -> None:
    model = ensemble()
    model.save(path)
    old = path.read_bytes()
    with torch.no_grad():
        model.get_parameter(where).view(-1)[-1] = float("nan")
    with pytest.raises(ValueError, match=rf"{where.removeprefix('net.')} holds NaN.*nothing was written"):
        model.save(path)
    if not where.endswith("weight"):
        with pytest.raises(ValueError, match="holds NaN"):
            model.save_member(M - 1, path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_another_members_nan_is_not_mine(path: Path) -> None:
    model = ensemble()
    with torch.no_grad():
        model.net[0].r[0, 0] = float("nan")
    model.save_member(1, path)
    server = ensemble()
    assert torch.equal(server(rows(), member=server.load_member(path)), model(rows(), member=1))


class Keeps(nn.Module):
    """A linear layer, and a state of its own."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.layer, self.state = nn.Linear(4, 3), state

    def get_extra_state(self) -> Any:
        return self.state

    def set_extra_state(self, state: Any) -> None:
        self.state = state

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_a_state_of_its_own_is_kept_where_it_is_a_tensor(path: Path) -> None:
    ensemble(Keeps(torch.tensor([5]))).save(path)
    assert be.load(path, Keeps(torch.tensor([0]))).net.state == 5
    with pytest.raises(ValueError, match=r"_extra_state \(from get_extra_state\) is a dict.*torch.save"):
        ensemble(Keeps({"step": 5})).save(path)


def with_buffers(**buffers: torch.Tensor) -> nn.Module:
    net = mlp()
    for name, buffer in buffers.items():
        net.register_buffer(name, buffer)
    return net


def test_buffers_that_are_views_of_one_another(path: Path) -> None:
    table = torch.arange(6.0)
    ensemble(with_buffers(table=table, start=table[:3], turned=table.view(2, 3).T)).save(path)
    net = be.load(path, with_buffers(table=torch.zeros(6), start=torch.zeros(3), turned=torch.zeros(3, 2))).net
    assert torch.equal(net.table, table)
    assert torch.equal(net.start, table[:3])
    assert torch.equal(net.turned, table.view(2, 3).T)


def test_what_safetensors_cannot_hold_is_named(path: Path) -> None:
    with pytest.raises(ValueError, match=r"angles is complex128.*nothing was written"):
        ensemble(with_buffers(angles=torch.ones(2, dtype=torch.complex128))).save(path)
    assert not path.exists()
    ensemble(with_buffers(angles=torch.ones(2, dtype=torch.complex64))).save(path)


@pytest.mark.parametrize("save", [be.Ensemble.save, lambda model, path: model.save_member(0, path)])
def test_a_sparse_buffer_is_named(path: Path, save: Any) -> None:
    with pytest.raises(ValueError, match=r"graph is sparse \(torch.sparse_coo\).*register it with persistent=False"):
        save(ensemble(with_buffers(graph=torch.eye(3).to_sparse())), path)
    assert not path.exists()


def test_a_network_without_memory_is_refused(path: Path) -> None:
    ensemble().save(path)
    with pytest.raises(ValueError, match="meta device"):
        be.load(path, mlp().to("meta"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing to write"):
        ensemble().save(tmp_path / "missing" / "e.safetensors")


@pytest.mark.skipif(sys.platform == "win32", reason="files have no size limit there")
def test_a_full_disk_is_an_os_error_and_the_old_file_stays(path: Path) -> None:
    import resource

    model = ensemble()
    model.save(path)
    old, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # Python ignores the signal that comes with it
    try:
        with pytest.raises(OSError, match=r"File too large; .*a file\.safetensors is as it was before"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_as_readable_as_any_other(path: Path) -> None:
    path.with_name("other").touch()
    ensemble().save(path)
    assert path.stat().st_mode == path.with_name("other").stat().st_mode


def test_threads_may_write_the_same_file(path: Path) -> None:
    model = ensemble()

    def work(_: int) -> None:
        model.save(path)
        be.load(path, mlp())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))  # which raises what a thread raised
    assert list(path.parent.iterdir()) == [path]


SAVES_FOR_EVER = """
import sys, torch, batchensemble as be
model = be.convert(torch.nn.Linear(600, 600), members=4, init="ones", combine="mean")
value = 0
while True:
    value = 1 - value
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float(value))
    model.save(sys.argv[1])
    print("saved", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_a_process_killed_while_it_saves_leaves_a_whole_file(path: Path, delay: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", SAVES_FOR_EVER, str(path)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        process.stdout.readline()
        time.sleep(delay)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    model = be.load(path, nn.Linear(600, 600))
    assert {value for p in model.parameters() for value in p.unique().tolist()} in ({0.0}, {1.0})  # all of one moment


# ---- one member ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize("rank", [1, 2])
def test_a_member_travels(path: Path, norm: str, rank: int) -> None:
    model, x = ensemble(convnet(), norm=norm, rank=rank), images()
    model.save_member(1, path)
    answer = model(x, member=1)
    index = model.load_member(path)
    assert index == M
    assert torch.equal(model(x, member=index), answer)
    kinds = {name.split(".")[-1] for name in load_file(path)}
    assert kinds >= {"r", "s", "bias"}
    assert ("running_mean" in kinds) is (norm == "member")
    assert all(name.startswith("1.") for name in load_file(path) if name.endswith("weight"))  # of norms only


def test_a_member_of_a_bare_layer(path: Path) -> None:
    model = ensemble(nn.Linear(4, 3))
    model.save_member(2, path)
    assert sorted(load_file(path)) == ["bias", "r", "s"]
    assert torch.equal(model(rows(), member=model.load_member(path)), model(rows(), member=2))


def changed(name: str, **options: Any) -> Any:
    model = ensemble(convnet(), **options)
    tensor = dict([*model.net.named_parameters(), *model.net.named_buffers()])[name]
    with torch.no_grad():
        tensor.view(-1)[0] += 1
    return model


@pytest.mark.parametrize(
    ("name", "layer", "options"),
    [
        ("0.weight", "0", {}),
        ("5.weight", "5", {}),
        ("0.weight", "0", {"include": "5"}),  # a layer that was left plain
        ("0.bias", "0", {"include": "5"}),
        ("1.weight", "1", {}),
        ("1.running_mean", "1", {}),
        ("1.running_var", "1", {}),
    ],
)
def test_other_shared_weights_are_refused_and_named(path: Path, name: str, layer: str, options: dict[str, Any]) -> None:
    ensemble(convnet(), **options).save_member(0, path)
    model = changed(name, **options)
    with pytest.raises(ValueError, match=f"differ first in layer '{layer}'"):
        model.load_member(path)
    assert len(model) == M


@pytest.mark.parametrize("name", ["0.r", "0.bias", "5.s"])
def test_other_members_do_not_matter(path: Path, name: str) -> None:
    ensemble(convnet()).save_member(1, path)
    assert changed(name).load_member(path) == M


def test_how_many_batches_a_norm_has_seen_does_not_matter(path: Path) -> None:
    ensemble(convnet()).save_member(1, path)
    assert changed("1.num_batches_tracked").load_member(path) == M


def test_what_a_network_only_remembers_for_a_while_does_not_matter(path: Path) -> None:
    def remembering(value: float) -> Any:
        net = mlp()
        net[0].register_buffer("cache", torch.tensor(value), persistent=False)
        return ensemble(net)

    remembering(1.0).save_member(1, path)
    assert remembering(2.0).load_member(path) == M


def test_running_statistics_of_the_members_do_not_matter(path: Path) -> None:
    ensemble(convnet(), norm="member").save_member(1, path)
    assert changed("1.running_mean", norm="member").load_member(path) == M


@pytest.mark.parametrize("options", [{"rank": 2}, {"include": "5"}, {"norm": "member"}])
def test_another_kind_of_ensemble_is_refused(path: Path, options: dict[str, Any]) -> None:
    ensemble(convnet()).save_member(0, path)
    other = ensemble(convnet(), **options)
    other.net.load_state_dict(
        {k: v for k, v in ensemble(convnet()).net.state_dict().items() if k in ("0.weight", "5.weight")}, strict=False
    )
    with pytest.raises(ValueError, match=r"other shared weights|does not fit this network"):
        other.load_member(path)
    assert len(other) == M


@pytest.mark.parametrize("kind", ["ensemble", "member"])
@pytest.mark.parametrize("change", ["missing", "besides"])
def test_a_file_with_other_tensors_than_the_network_is_refused(path: Path, kind: str, change: str) -> None:
    model = ensemble()
    model.save(path) if kind == "ensemble" else model.save_member(0, path)
    tensors, header = files.read(path, kind)
    name, where = ("2.s", "network") if change == "missing" else ("3.s", "file")
    other = {key: value for key, value in tensors.items() if key != name}
    files.write(path, kind, other if change == "missing" else {**other, name: torch.ones(3)}, header)
    with pytest.raises(ValueError, match=f"does not fit this network: only the {where} has {name}"):
        be.load(path, mlp()) if kind == "ensemble" else model.load_member(path)
    assert len(model) == M


def test_loading_a_member_leaves_random_numbers_as_they_are(path: Path) -> None:
    model = ensemble()
    model.save_member(1, path)
    before = torch.get_rng_state()
    model.load_member(path)
    assert torch.equal(torch.get_rng_state(), before)


def test_members_that_do_not_exist_cannot_be_saved(path: Path) -> None:
    with pytest.raises(IndexError, match=str(M)):
        ensemble().save_member(M, path)
    assert not path.exists()


@pytest.mark.parametrize("types", [(torch.float64, torch.float32), (torch.float32, torch.bfloat16)], ids=str)
def test_an_ensemble_is_not_cast_without_a_word(path: Path, types: tuple[torch.dtype, torch.dtype]) -> None:
    theirs, ours = types
    model = ensemble().to(theirs)
    model.save(path)
    said = rf"0\.bias is {theirs} in the file and {ours} in the network.*net\.to\({theirs}\), and cast afterwards"
    with pytest.raises(ValueError, match=said):
        be.load(path, mlp().to(ours))
    cast = be.load(path, mlp().to(theirs)).to(ours).eval()
    assert torch.equal(cast(rows().to(ours)), model.to(ours)(rows().to(ours)))


def test_types_are_kept(path: Path) -> None:
    model = ensemble(convnet()).bfloat16()
    model.save(path)
    again = be.load(path, convnet().bfloat16()).eval()
    assert torch.equal(again(images().bfloat16()), model(images().bfloat16()))
    model.save_member(0, path)
    with pytest.raises(ValueError, match=r"other shared weights.* in the same dtype: cast afterwards"):
        ensemble(convnet()).load_member(path)


def test_a_link_is_replaced_and_what_it_points_to_stays(path: Path, tmp_path: Path) -> None:
    """As safetensors does: links often point into a cache or to an earlier file, which others still read."""
    earlier = tmp_path / "earlier.safetensors"
    earlier.write_text("what others read")
    path.symlink_to(earlier)
    ensemble().save(path)
    assert not path.is_symlink()
    assert earlier.read_text() == "what others read"
