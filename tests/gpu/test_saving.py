"""Tensors of devices in files, pickles and copies."""

import copy
import io
import os
import pathlib
import pickle
import subprocess
import sys

import pytest
import tinytorch as tt
from test_serialization import WAYS, all_bytes_survive, dtypes_share_a_storage, values_put_off_survive
from tinytorch import nn, optim
from tinytorch.backends.cuda import runtime

pytestmark = pytest.mark.usefixtures("gpu")


def device(values, **options):
    return tt.tensor(values, device="cuda:0", **options)


def written(obj):
    f = io.BytesIO()
    tt.save(obj, f)
    return f.getvalue()


def read(content, where=None):
    return tt.load(io.BytesIO(content), map_location=where)


def test_pickles_come_back_on_the_device_and_share_memory():
    a = device([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b, c, d = pickle.loads(pickle.dumps((a, a.t(), a[1].requires_grad_())))
    assert [t.device for t in (b, c, d)] == [a.device] * 3
    assert b.tolist() == a.tolist() and c.stride() == (1, 3) and d.requires_grad
    b[1, 0] = 40.0
    assert c[0, 1].item() == 40.0 and d.tolist() == [40.0, 5.0, 6.0]
    assert pickle.loads(pickle.dumps(tt.empty(0, device="cuda:0"))).device == a.device


def test_deep_copies():
    a = device([1.0, 2.0, 3.0], requires_grad=True)
    (a * a).sum().backward()
    b, view = copy.deepcopy((a, a.detach()[1:]))
    assert b.device == a.device and b.tolist() == [1.0, 2.0, 3.0] and b.grad.tolist() == [2.0, 4.0, 6.0]
    assert b.data_ptr() != a.data_ptr() and view.data_ptr() == b.data_ptr() + 4
    net = copy.deepcopy(nn.Linear(3, 2).cuda())
    assert net.weight.is_cuda and net.weight.requires_grad


def test_what_is_saved_comes_back_where_it_was():
    a = device([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    got = read(
        written({"a": a, "view": a[1:, ::2], "here": tt.ones(2), "p": nn.Parameter(a), "bits": device([1, 0, 1])})
    )
    assert [str(t.device) for t in got.values()] == ["cuda:0", "cuda:0", "cpu", "cuda:0", "cuda:0"]
    assert got["view"].tolist() == [[4.0, 6.0]] and got["bits"].tolist() == [1, 0, 1] and got["p"].requires_grad
    got["a"].zero_()
    assert got["view"].tolist() == [[0.0, 0.0]] and got["p"].sum().item() == 0.0


@WAYS
@pytest.mark.parametrize("check", [all_bytes_survive, dtypes_share_a_storage, values_put_off_survive])
def test_whole_storages(check, way):
    check(way, "cuda:0")


@pytest.mark.parametrize(
    "where",
    [
        "cpu",
        tt.device("cpu"),
        {"cuda:0": "cpu"},
        lambda whole, name: whole,
        lambda whole, name: whole.cpu() if name == "cuda:0" else None,
    ],
)
def test_a_file_of_a_device_read_to_the_cpu(where):
    got = read(written([device([1.0, 2.0]), tt.ones(1)]), where)
    assert [t.device.type for t in got] == ["cpu", "cpu"] and got[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("where", ["cuda:0", 0, {"cpu": "cuda"}, lambda whole, name: whole.cuda(0)])
def test_a_file_of_the_cpu_read_to_a_device(where):
    assert str(read(written(tt.ones(2)), where).device) == "cuda:0"


def test_wrong_places():
    content = written(device([1.0]))
    count = runtime.device_count()
    for where in ({"cuda:0": f"cuda:{count}"}, f"cuda:{count}"):
        with pytest.raises(RuntimeError, match=f"CUDA device {count}, but there are {count}: use map_location"):
            read(content, where)
    with pytest.raises(TypeError, match="map_location function must return the storage that it is given.*not int"):
        read(content, lambda whole, name: 3)


def test_a_file_of_a_device_where_there_is_none(tmp_path):
    tt.save({"w": device([1.0, 2.0])}, tmp_path / "file")
    code = (
        "import sys, tinytorch as tt\n"
        "from tinytorch.backends.cuda import runtime\n"
        "def none(): raise RuntimeError('no driver')\n"
        "runtime.driver = none\n"
        "try: tt.load(sys.argv[1])\n"
        "except RuntimeError as e: print(e)\n"
        "print(tt.load(sys.argv[1], map_location='cpu')['w'].tolist())\n"
    )
    folders = os.pathsep.join([str(pathlib.Path(tt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": folders},
    )
    assert done.stdout.splitlines() == [
        "Attempting to deserialize object on a CUDA device, but no CUDA device is available: use "
        "map_location='cpu' to map all storages to the CPU",
        "[1.0, 2.0]",
    ], done.stderr


def test_training_goes_on_from_a_checkpoint():
    def made():
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).to("cuda:0")
        return net, optim.Adam(net.parameters())

    def train(net, opt):
        opt.zero_grad()
        net(tt.ones(2, 3, device="cuda:0")).sum().backward()
        opt.step()
        return [p.tolist() for p in net.parameters()]

    net, opt = made()
    train(net, opt)
    content = written({"net": net.state_dict(), "opt": opt.state_dict()})
    wanted = train(net, opt)
    for where in (None, "cpu"):  # what is on the CPU goes to where the parameters are
        state = read(content, where)
        again, fresh = made()
        again.load_state_dict(state["net"])
        fresh.load_state_dict(state["opt"])
        assert {fresh.state[p]["exp_avg"].device for p in again.parameters()} == {tt.device("cuda:0")}
        assert train(again, fresh) == wanted


def test_states_of_generators_are_of_the_cpu():
    state = tt.cuda.get_rng_state(0)
    assert not state.is_cuda
    with pytest.raises(TypeError, match="expected a state on the CPU, got one on cuda:0"):
        tt.cuda.set_rng_state(state.cuda(0), 0)


def test_cuda_is_the_current_device():
    content = written(tt.arange(3.0))
    with tt.cuda.device(tt.cuda.device_count() - 1):
        assert read(content, "cuda").device.index == tt.cuda.device_count() - 1
