"""Classes that inherit from Parameter and Buffer: their constructors take what they like, and they are copied and
saved in their own way. Each program runs with either library."""

import copy
import io

import pytest
from autograd.rules import agree, outcome, programs

PROGRAMS, program = programs()


def scaled(torch, base):
    """A class of tensors that takes an argument more than its base, and hands it on to its copies."""

    def rebuild(make, args, unit, requires_grad):
        return Scaled(make(*args), unit=unit, requires_grad=requires_grad)

    class Scaled(base):
        def __new__(cls, data, *, unit, requires_grad=True):
            made = torch.Tensor._make_subclass(cls, data.data, requires_grad)
            made.unit = unit
            return made

        def __reduce_ex__(self, protocol):
            make, args = super().__reduce_ex__(protocol)
            return rebuild, (make, args, self.unit, self.requires_grad)

    return Scaled


def named(t):
    return type(t).__name__, t.tolist(), t.requires_grad, getattr(t, "unit", None)


@program
def arguments_of_their_own(torch):
    x = torch.arange(2.0)
    return [named(scaled(torch, base)(x, unit="m")) for base in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)]


@program
def initializers(torch):
    class Bare(torch.nn.Parameter):
        def __init__(self, *args, **kwargs):
            super().__init__()
            self.unit = "kg"

    class Passed(torch.nn.Parameter):
        def __init__(self, data):
            super().__init__(data)

    x = torch.arange(2.0)
    return named(Bare(x)), named(Bare(x, requires_grad=False)), outcome(lambda: named(Passed(x)))


@program
def copies(torch):
    """What ``copy.copy`` makes of them by the call and the arguments that their bases give."""
    x = torch.arange(2.0)
    made = [scaled(torch, base)(x, unit="s") for base in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)]
    plain = torch.ones(2), torch.nn.Parameter(torch.ones(2))
    for t in plain:
        t.unit = "K"
    return [named(copy.copy(t)) for t in (*made, *plain)], [len(t.__reduce_ex__(2)) for t in made]


KEPT = []


def kept(make, args):
    """A tensor of a file, noted."""
    KEPT.append(make(*args))
    return KEPT[-1]


@program
def files(torch):
    """``save`` asks a class that reduces itself."""

    class Noted(torch.nn.Parameter):
        def __reduce_ex__(self, protocol):
            make, args = torch.nn.Parameter(self.data).__reduce_ex__(protocol)
            return kept, (make, args)

    KEPT.clear()
    file = io.BytesIO()
    torch.save({"p": Noted(torch.arange(3.0))}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)["p"]
    return named(loaded), loaded is KEPT[0], len(KEPT)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
