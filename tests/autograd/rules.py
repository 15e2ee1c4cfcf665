"""Small programs of the tape's rules, run with PyTorch and with tinytorch: both must say the same. A program is a
function of the library; it gives numbers, names and the kinds of exceptions."""

import warnings

import tinytorch


def outcome(fn):
    """What ``fn`` gives, or the kind of its exception."""
    try:
        return plain(fn())
    except Exception as exc:
        return type(exc).__name__


def plain(value):
    """A value without the library's types."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def leaf(torch, *values, **options):
    """A leaf of these values, that requires grad."""
    return torch.tensor(list(values), requires_grad=True, **options)


def agree(program, torch):
    """Fails unless the program says the same of both libraries."""
    results = []
    for library in (torch, tinytorch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(plain(program(library)))
    assert results[1] == results[0]


def programs():
    """A dictionary, and the decorator that enters programs there."""
    entered = {}

    def program(fn):
        entered[fn.__name__] = fn
        return fn

    return entered, program
