"""Pipes of samples: what they give is what PyTorch's give."""

import importlib
import pickle

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


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program(name, torch):
    agree(PROGRAMS[name], torch)


def test_batches_say_what_they_hold():
    wrap, _ = pipes(tinytorch)
    (batch,) = wrap([1, 2]).batch(5)
    assert batch.as_str() == "[1, 2]" and list(batch.raw_iterator()) == [1, 2]
