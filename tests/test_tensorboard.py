"""Event files: what TensorBoard reads of them is what it reads of PyTorch's."""

import importlib
import pathlib
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tinytorch
import tinytorch.utils.tensorboard

reading = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
RUNS = np.random.default_rng(0)
IMAGE = RUNS.random((3, 8, 10), dtype=np.float32)
VALUES = RUNS.standard_normal(1000).astype(np.float32)
BYTES = RUNS.integers(0, 256, (4, 1, 5, 6), dtype=np.uint8)
BOXES = np.array([[1, 2, 8, 9], [10.5, 3, 20, 12]], dtype=np.float32)
POINTS = RUNS.random((1, 4, 3), dtype=np.float32)
LABELS, GUESSES = RUNS.integers(0, 2, 50), RUNS.random(50, dtype=np.float32)
BINS = [1.0, 2.0, 3.0]
SPRITES = RUNS.random((4, 1, 3, 4), dtype=np.float32)
DTYPES = ["float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool", "complex64",
          "complex128"]  # fmt: skip


def events(folder):
    """All events under a folder, without their times, by file. Files' names end in how many there were before."""
    found = {}
    files = pathlib.Path(folder).rglob("events.out.*")
    for file in sorted(files, key=lambda file: re.sub(r"\d+", lambda digits: digits[0].zfill(20), str(file))):
        read = []
        for event in reading.LegacyEventFileLoader(str(file)).Load():
            event.wall_time = 0
            read.append(event)
        found.setdefault(str(file.parent.relative_to(folder)), []).extend(read)
    return found


def writer_of(library, folder, **options):
    module = importlib.import_module(f"{library.__name__}.utils.tensorboard")
    return module.SummaryWriter(str(folder), **options)


CALLS = {
    "scalar": lambda w, t: [
        w.add_scalar("a/b", 3.5, 1),
        w.add_scalar("tensor", t.tensor([2.5], requires_grad=True), np.int64(2), walltime=5.0),
        w.add_scalar("int", 7),
        w.add_scalar("half", t.tensor(1.5, dtype=t.bfloat16), 3),
        w.add_scalar("new", 0.1, 1, new_style=True),
        w.add_scalar("double", 0.1, 1, new_style=True, double_precision=True),
    ],
    "scalars": lambda w, t: w.add_scalars("main/tag", {"x": 1.0, "y": t.tensor(2.0)}, 4),
    "histogram": lambda w, t: [
        w.add_histogram("values", t.tensor(VALUES), 1),
        w.add_histogram("some", t.tensor(VALUES).reshape(10, 100), bins="auto"),
        w.add_histogram("few", VALUES, bins="fd", max_bins=7),
        w.add_histogram("own", t.arange(10), bins=[0, 3, 5, 20]),
        w.add_histogram("zeros", t.zeros(5)),
        w.add_histogram_raw("raw", 0, 3, 6, 9, 20, BINS, [1, 2, 3], 2),
    ],
    "image": lambda w, t: [
        w.add_image("chw", t.tensor(IMAGE), 1),
        w.add_image("hwc", IMAGE.transpose(1, 2, 0), dataformats="HWC"),
        w.add_image("hw", t.tensor(IMAGE[0]), dataformats="HW"),
        w.add_image("bytes", t.tensor(BYTES[0])),
        w.add_images("grid", t.tensor(BYTES), 2),
        w.add_images("nhwc", BYTES.transpose(0, 2, 3, 1), dataformats="NHWC"),
        w.add_image_with_boxes("boxes", t.tensor(np.tile(IMAGE, (1, 4, 4))), t.tensor(BOXES), 1, labels=["a", "b"]),
        w.add_image_with_boxes("larger", t.tensor(np.tile(IMAGE, (1, 4, 4))), t.tensor(BOXES), rescale=2, labels="one"),
    ],
    "video": lambda w, t: w.add_video("v", t.tensor(RUNS.random((3, 2, 3, 4, 5))), 1),
    "audio": lambda w, t: [
        w.add_audio("s", t.tensor(np.sin(np.arange(100) / 9)).reshape(1, -1), 1, sample_rate=8000),
        w.add_audio("loud", np.arange(10.0)),
    ],
    "text": lambda w, t: w.add_text("said", "**ü**", 3),
    "tensor": lambda w, t: [
        w.add_tensor(str(k), t.tensor([[1, 0, 3]], dtype=getattr(t, k)), 1)
        for k in DTYPES
    ],
    "embedding": lambda w, t: [
        w.add_embedding(t.tensor(VALUES[:12].reshape(4, 3)), ["a", "b", "c", "d"], t.tensor(SPRITES), 3, "t/x"),
        w.add_embedding(VALUES[:4].reshape(2, 2), [["a", 1], ["b", 2]], metadata_header=["name", "n"]),
    ],
    "curves": lambda w, t: [
        w.add_pr_curve("pr", t.tensor(LABELS), t.tensor(GUESSES), 1),
        w.add_pr_curve("weighted", LABELS, GUESSES, num_thresholds=20, weights=GUESSES),
        w.add_pr_curve_raw("raw", *[[3, 2, 1]] * 4, [0.5, 0.6, 0.7], [1.0, 0.5, 0.1], num_thresholds=3),
    ],
    "custom": lambda w, t: [
        w.add_custom_scalars({"c": {"one": ["Multiline", ["a", "b"]], "two": ["Margin", ["a", "b", "c"]]}}),
        w.add_custom_scalars_multilinechart(["a", "b"]),
        w.add_custom_scalars_marginchart(["a", "b", "c"], "x", "y"),
    ],
    "mesh": lambda w, t: w.add_mesh(
        "m", t.tensor(POINTS), t.tensor((POINTS * 255).astype(np.int32)), np.array([[[0, 1, 2]]]), {"k": 1}, 2
    ),
    "hparams": lambda w, t: w.add_hparams(
        {"lr": 0.1, "n": 3, "name": "x", "on": True, "none": None, "t": t.tensor([2.0])},
        {"loss": 1.5, "hit": t.tensor(0.5)}, {"name": ["x", "y"], "n": [3, 4]}, "run", 7,
    ),
    "purge": lambda w, t: [w.add_scalar("a", 1.0, 5), w.close(), w.add_scalar("a", 2.0, 6)],
}  # fmt: skip


@pytest.fixture
def both(torch, tmp_path):
    pytest.importorskip("torch.utils.tensorboard")

    def write(act, **options):
        for library in (torch, tinytorch):
            RUNS.bit_generator.state = np.random.default_rng(1).bit_generator.state
            with writer_of(library, tmp_path / library.__name__, **options) as writer:
                act(writer, library)
        return tmp_path / "torch", tmp_path / "tinytorch"

    return write


@pytest.mark.parametrize("name", CALLS)
def test_events_are_those_of_torch(both, name):
    theirs, ours = both(CALLS[name], **({"purge_step": 3, "filename_suffix": ".x"} if name == "purge" else {}))
    wanted, got = events(theirs), events(ours)
    assert wanted.keys() == got.keys() and sum(map(len, got.values())) > (name != "embedding")
    for file, written in wanted.items():
        assert got[file] == written, file
    others = [p.relative_to(theirs) for p in sorted(theirs.rglob("*")) if p.is_file() and ".out." not in p.name]
    assert len(others) == (6 if name == "embedding" else 0)
    for path in others:
        assert (ours / path).read_bytes() == (theirs / path).read_bytes(), path


@pytest.mark.parametrize(
    "act",
    [
        lambda w, t: w.add_scalar("a", t.ones(2)),
        lambda w, t: w.add_scalar("a", [1.0]),
        lambda w, t: w.add_histogram("a", t.ones(0)),
        lambda w, t: w.add_histogram_raw("a", 0, 1, 1, 1, 1, [1], []),
        lambda w, t: w.add_image("a", t.ones(3, 4)),
        lambda w, t: w.add_image("a", t.ones(3, 4, 5), dataformats="CCW"),
        lambda w, t: w.add_audio("a", t.ones(2, 3)),
        lambda w, t: w.add_hparams([], {}),
        lambda w, t: w.add_hparams({"a": object()}, {}),
        lambda w, t: w.add_hparams({"a": 1}, {}, {"a": [1, "x"]}),
        lambda w, t: w.add_custom_scalars_marginchart(["a"]),
        lambda w, t: w.add_embedding(t.ones(2, 2), ["a"]),
        lambda w, t: w.add_embedding(t.ones(2, 2, 2)),
        lambda w, t: w.add_figure("a", 3),
    ],
)
def test_errors(torch, tmp_path, act):
    pytest.importorskip("torch.utils.tensorboard")
    kinds = []
    for library in (torch, tinytorch):
        with writer_of(library, tmp_path / library.__name__) as writer, pytest.raises(Exception) as caught:  # noqa: B017
            act(writer, library)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_figures(both):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")

    def figure():
        made = plt.figure(figsize=(2, 1))
        made.gca().plot([1, 2, 1])
        return made

    def act(w, t):
        w.add_figure("one", figure(), 1)
        w.add_figure("two", [figure(), figure()], 2, close=True)
        assert not plt.get_fignums()

    theirs, ours = both(act)
    assert events(ours) == events(theirs) and len(events(ours)["."]) == 3


def net(t):
    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4), t.nn.ReLU(inplace=True), t.nn.Dropout())
            self.head = t.nn.Linear(4, 2)
            self.scale = t.nn.Parameter(t.ones(2))

        def forward(self, x, y):
            return self.head(self.body(x + y)) * self.scale, self.head(self.body(y)).sum()

    return Net()


def read_graph(folder):
    (written,) = [e for found in events(folder).values() for e in found if e.graph_def]
    return {node.name: node for node in graph_pb2.GraphDef.FromString(written.graph_def).node}


def boxes(nodes):
    """The modules' scopes."""
    return {name.rpartition("/")[0] for name, n in nodes.items() if n.op.startswith("aten::")}


def test_graph(torch, tmp_path):
    for library in (torch, tinytorch):
        model = net(library).train()
        model.body[3].eval()
        with writer_of(library, tmp_path / library.__name__) as writer:
            writer.add_graph(model, (library.ones(5, 3), library.ones(5, 3)), use_strict_trace=False)
        assert model.training and model.head.training
    assert not model.body[3].training and model.body[1].num_batches_tracked.item() == 0
    theirs, ours = read_graph(tmp_path / "torch"), read_graph(tmp_path / "tinytorch")
    assert boxes(ours) == boxes(theirs) and len(boxes(ours)) == 6
    assert {"input/x", "input/y", "output/output.1"} <= theirs.keys() & ours.keys()
    assert all(name in ours for node in ours.values() for name in node.input)  # every arrow has a beginning
    kinds = sorted(n.op.rstrip("_") for n in ours.values() if n.op.startswith("aten::"))
    assert [k for k in kinds if k in ("aten::linear", "aten::relu", "aten::mul", "aten::sum")] == [
        *["aten::linear"] * 4, "aten::mul", *["aten::relu"] * 2, "aten::sum"]  # fmt: skip

    def shape(name):
        return [d.size for d in ours[name].attr["_output_shapes"].list.shape[0].dim]

    assert shape("input/x") == [5, 3] and shape("output/output.1") == [5, 2] and shape("output/output.2") == []
    assert shape("Net/Linear[head]/weight") == [2, 4]
    seen, todo = set(), ["output/output.1"]
    while todo:
        seen.add(name := todo.pop())
        todo += [n for n in ours[name].input if n not in seen]
    assert {
        "input/x",
        "Net/scale",
        "Net/Sequential[body]/BatchNorm1d[1]/weight",
    } <= seen and "output/output.2" not in seen


def test_onnx_graph(torch, tmp_path, monkeypatch):
    """What the onnx package reads is what it says here."""

    def of(**fields):
        return SimpleNamespace(**fields, ListFields=lambda: list(fields.items()))

    def value(name, *shape):
        sizes = of(dim=[of(dim_value=n) for n in shape])
        return of(name=name, type=of(tensor_type=of(elem_type=1, shape=sizes)))

    nodes = [
        of(output=["h"], op_type="MatMul", input=["x", "w"], attribute=[]),
        of(output=["y"], op_type="Clip", input=["h"], attribute=[of(name="min", f=0.5), of(name="max", f=2.0)]),
    ]
    graph = of(input=[value("x", 2, 3), value("w", 3, 4)], output=[value("y", 2, 4)], node=nodes)
    monkeypatch.setitem(sys.modules, "onnx", SimpleNamespace(load=lambda file: of(graph=graph)))
    for library in (torch, tinytorch):
        with writer_of(library, tmp_path / library.__name__) as writer:
            writer.add_onnx_graph("model.onnx")
    theirs, ours = read_graph(tmp_path / "torch"), read_graph(tmp_path / "tinytorch")
    assert ours == theirs and len(ours) == 4 and ours["y"].op == "Clip"
    monkeypatch.setitem(sys.modules, "onnx", None)
    with writer_of(tinytorch, tmp_path) as writer, pytest.raises(ModuleNotFoundError, match="onnx"):
        writer.add_onnx_graph("model.onnx")


def test_a_broken_model_is_left_as_it_was(tmp_path):
    model = net(tinytorch)
    with writer_of(tinytorch, tmp_path) as writer, pytest.raises(RuntimeError):
        writer.add_graph(model, (tinytorch.ones(5, 9), tinytorch.ones(5, 9)))
    assert model.training and not model.head._forward_hooks and not model.head._forward_pre_hooks
    assert model(tinytorch.ones(5, 3), tinytorch.ones(5, 3))[0].requires_grad


def test_the_folder_and_flushing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = tinytorch.utils.tensorboard.SummaryWriter(comment="_note")
    assert str(writer.get_logdir()).startswith("runs/") and writer.log_dir.endswith("_note")
    writer.add_scalar("x", 1.0, 3)
    writer.flush()
    read_back = event_accumulator.EventAccumulator(writer.log_dir).Reload()
    assert [(e.step, e.value) for e in read_back.Scalars("x")] == [(3, 1.0)]
    (read,) = events(tmp_path).values()
    assert [v.tag for e in read for v in e.summary.value] == ["x"] and read[1].step == 3
    writer.close()
    writer.close()
    writer.flush()
    files = tinytorch.utils.tensorboard.FileWriter(tmp_path / "files", flush_secs=1)
    assert files.get_logdir() == str(tmp_path / "files")
    files.close()
    files.reopen()
    files.reopen()
    files.add_event(tinytorch.utils.tensorboard.writer.Event(step=4))
    files.close()
    assert [e.step for e in events(tmp_path / "files")["."]][-1] == 4


def test_without_the_package():

    text = "import sys\nsys.modules['tensorboard'] = None\nimport tinytorch.utils.tensorboard"
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert ended.returncode == 1 and "pip install 'tinytorch[tensorboard]'" in ended.stderr
