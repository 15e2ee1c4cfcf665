"""Pipes of samples: what they give is what PyTorch's give."""

import importlib
import os
import pickle
import tempfile

import pytest
from autograd.rules import agree, outcome, programs

import tinytorch

PROGRAMS, program = programs()
ROWS = [(1, 2), (3, 4)]


def pipes(torch):
    """The wrappers of iterables and of sequences."""
    iterables, sequences = (
        importlib.import_module(f"{torch.__name__}.utils.data.datapipes.{n}") for n in ("iter", "map")
    )
    return iterables.IterableWrapper, sequences.SequenceWrapper


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


@program
def steps(torch):
    wrap, _ = pipes(torch)

    def p():
        return wrap(range(7)).map(abs)

    made = [
        p().batch(3), p().batch(3, drop_last=True), p().batch(2).batch(2).unbatch(), p().concat(p()), p().map(str),
        p().filter(bool), p().zip(wrap([5, 6])), p().mux(wrap([10, 20])), p().sharding_filter(), p().batch(2).collate(),
        wrap([[[1, 2], [3]], [[4]]]).unbatch(2), wrap([[[1, 2], [3]], [[4]]]).unbatch(-1), wrap([]).batch(2),
        wrap(ROWS).map(str, input_col=0), wrap(ROWS).map(str, input_col=0, output_col=-1),
        wrap([{"a": 1}]).map(str, "a", "b"), wrap([[1, 2, 3]]).map(max, input_col=[2, 0], output_col=1),
        wrap([(1, 2, 3)]).map(max, input_col=[0, 2]), wrap([[0, 1], [1, 0]]).filter(bool, input_col=1),
        p().groupby(bool), p().groupby(bool, group_size=2), p().groupby(bool, keep_key=True),
        p().groupby(bool, buffer_size=4), p().groupby(str, buffer_size=3),
        p().groupby(str, buffer_size=3, group_size=2, drop_remaining=True),
        p().groupby(bool, buffer_size=4, group_size=3, guaranteed_group_size=1),
    ]  # fmt: skip
    return [(outcome(lambda q=q: len(q)) if hasattr(q, "__len__") else None, [plain(v) for v in q]) for q in made]


@program
def of_numbers(torch):
    _, wrap = pipes(torch)
    s = wrap([1, 2, 3])
    made = s.map(str), s.map(str).batch(2), s.batch(2, drop_last=True), s.zip(s), s.concat(s)
    kinds = [outcome(lambda q=q: q[7])[0] for q in made]
    return [[q[k] for k in range(len(q))] for q in made], kinds


@program
def branches(torch):
    wrap, _ = pipes(torch)

    def invalid(pipe):
        first = iter(pipe)
        return [next(first), next(iter(pipe)), outcome(lambda: next(first))[0]]

    a, b = wrap(range(6)).fork(2)
    results = [list(a), list(a), list(b), list(b), outcome(lambda: list(zip(a, b)))[0], len(a), invalid(b), list(a)]
    small, other = wrap(range(6)).fork(2, buffer_size=2)
    results += [outcome(lambda: list(small))[0], list(zip(small, other)), isinstance(wrap([]).fork(1), list)]
    rows = [[1], [2]]
    none, _ = wrap(range(6)).fork(2, buffer_size=0)
    results.append(outcome(lambda: next(iter(none)))[0])
    for how in (None, "shallow", "deep"):
        copies = wrap(rows, deepcopy=False).fork(2, copy=how)
        results.append([x is y for x, y in zip(copies[0], rows)])
    even, odd = wrap(range(6)).demux(2, lambda x: x % 2)
    results += [list(odd), list(even), next(iter(odd)), list(even), outcome(lambda: len(even))[0]]
    for classify in (lambda x: x % 3, lambda x: None if x == 4 else 0, lambda x: -1, lambda x: x % 2):
        for drop in (False, True):
            parts = wrap(range(6)).demux(2, classify, drop_none=drop, buffer_size=3)
            results.append([outcome(lambda part=part: list(part)) for part in reversed(parts)])
    for wrong in ({"num_instances": 0}, {"num_instances": 2, "copy": "no"}):
        results.append(outcome(lambda wrong=wrong: wrap([]).fork(**wrong))[0])
    return [r if not isinstance(r, tuple) else r[0] for r in results]


@program
def files(torch):
    wrap, _ = pipes(torch)
    module = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "inner"))
        for name, content in (("b.txt", b"hello"), ("a.bin", b"abcdefg"), ("inner/c.txt", b""), ("inner/d.bin", b"1")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        lister = module.FileLister
        for pipe in (
            lister(folder), lister(folder, recursive=True), lister([folder], "*.txt", recursive=True),
            lister(folder, ["*.bin", "b*"]), lister(os.path.join(folder, "b.txt")), wrap([folder]).list_files(),
            lister(folder, "x", abspath=True), lister(folder, abspath=True, recursive=True),
        ):  # fmt: skip
            results.append([os.path.relpath(path, folder) for path in pipe])
        every = lister(folder, recursive=True)
        for pipe in (
            every.open_files(mode="b").read_from_stream(), every.open_files("rb").read_from_stream(chunk=3),
            module.StreamReader(module.FileOpener(lister(folder, "*.txt"), encoding="utf-8")),
        ):  # fmt: skip
            results.append([(os.path.relpath(path, folder), content) for path, content in pipe])
        results += [outcome(lambda: module.FileOpener(wrap([]), "w"))[0], outcome(lambda: len(every))[0]]
        results.append(outcome(lambda: list(lister(os.path.join(folder, "no")))))
        results.append(len(lister(folder, length=3)))
    return results


@program
def other_orders(torch):
    wrap, numbers = pipes(torch)
    module = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter")
    s = numbers(range(9)).shuffle()
    results = [list(s.set_seed(3)), sorted(s), len(s), list(s.set_shuffle(False))]
    results += [list(numbers("abc").shuffle(indices=[2, 0]).set_seed(1)), list(module.Sampler(wrap(range(4))))]
    return results


@program
def errors(torch):
    wrap, _ = pipes(torch)
    return [
        outcome(call)[0]
        for call in (
            lambda: wrap([1]).nothing,
            lambda: len(wrap([1]).filter(bool)),
            lambda: list(wrap([1]).filter(abs)),
            lambda: list(wrap([1]).unbatch()),
            lambda: list(wrap([1]).unbatch(-2)),
            lambda: list(wrap(range(5)).groupby(str, buffer_size=3, group_size=2)),
            lambda: wrap([1]).groupby(str, buffer_size=3, group_size=4),
            lambda: wrap([1]).zip([1]),
            lambda: wrap([1]).map(abs, None, 1),
            lambda: wrap([1]).sharding_filter().apply_sharding(2, 2),
        )
    ]


@program
def shuffled_and_shared(torch):
    wrap, _ = pipes(torch)
    q, part = wrap(range(9)).shuffle(buffer_size=3), wrap(range(9)).sharding_filter()
    part.apply_sharding(4, 1)
    same = [list(wrap(range(99)).shuffle().set_seed(3)) for _ in range(2)]
    kept = sorted(q), q.set_shuffle(False) is q, list(q), same[0] == same[1], same[0] == sorted(same[0])
    return kept, list(part), len(part)


@program
def classes_become_methods(torch):
    data, (wrap, _) = torch.utils.data, pipes(torch)
    name = f"twice_{torch.__name__}"

    @data.functional_datapipe(name)
    class Twice(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield 2 * x

    again = outcome(lambda: data.functional_datapipe(name)(Twice))[0]
    return list(getattr(wrap([1, 2]), name)()), again, issubclass(data.MapDataPipe, data.Dataset)


@program
def loaded(torch):
    wrap, numbered = pipes(torch)
    loaders = [torch.utils.data.DataLoader(q, batch_size=2) for q in (wrap([1, 2, 3]).map(abs), numbered([1, 2, 3]))]
    copied = pickle.loads(pickle.dumps(wrap([1, 2, 3]).batch(2)))
    return [[b.tolist() for b in loader] for loader in loaders], list(copied)


@program
def graphs(torch):
    wrap, numbered = pipes(torch)
    settings = importlib.import_module(f"{torch.__name__}.utils.data.graph_settings")

    def orders(pipe):
        made = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            made.append([list(pipe), list(pipe)])
        return made[0] == made[1], made[0] != made[2], made[0][0] != made[0][1]

    shuffled, numbers = wrap(range(99)).shuffle(), numbered(range(99)).shuffle()
    results = [orders(p) for p in (shuffled, numbers, torch.utils.data.DataLoader(shuffled, None))]
    for pipe in (shuffled.map(abs).zip(wrap(range(99))), shuffled.fork(2)[0], shuffled.demux(1, lambda x: 0)[0]):
        results.append(settings.apply_shuffle_settings(pipe, False) is pipe and list(pipe)[:3])
        results.append(list(settings.apply_shuffle_settings(pipe, True))[:3] != results[-1])
    twice = wrap(range(9)).sharding_filter().sharding_filter()
    results.append(outcome(lambda: settings.apply_sharding(twice, 2, 0)))
    results.append(list(settings.apply_sharding(wrap(range(9)).sharding_filter().map(abs), 2, 1)))
    results.append(sorted(settings.apply_shuffle_settings(wrap(range(9)), True)))
    results += [list(p) for p in pickle.loads(pickle.dumps(wrap(range(3)).fork(2, copy="deep")))]
    begun, _ = wrap(range(3)).fork(2)
    next(iter(begun))
    return [*results, list(pickle.loads(pickle.dumps(begun)))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program(name, torch):
    agree(PROGRAMS[name], torch)


def test_batches_say_what_they_hold():
    wrap, _ = pipes(tinytorch)
    (batch,) = wrap([1, 2]).batch(5)
    assert batch.as_str() == "[1, 2]" and list(batch.raw_iterator()) == [1, 2]


@pytest.mark.parametrize("shuffle", [None, True, False])
def test_workers_share_what_they_shuffle_alike(shuffle):
    wrap, _ = pipes(tinytorch)
    pipe = wrap(range(12)).shuffle().sharding_filter()
    loader = tinytorch.utils.data.DataLoader(pipe, None, shuffle, num_workers=2, persistent_workers=True)
    epochs = [list(loader) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 2
    assert (epochs[0] == epochs[1] == sorted(epochs[0])) is (shuffle is False)
