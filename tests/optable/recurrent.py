"""Recurrent networks and cells. Their halves are computed in float32, where PyTorch rounds each step."""

from compare import FLOATS

from optable.core import NUMBERS, Op, S, T

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


def how(name):
    """PyTorch computes some in integers."""
    return {"dtypes": NUMBERS if name in ("rnn_relu", "rnn_relu_cell", "rnn_tanh_cell") else FLOATS, "half_ulps": 64}


def parameters(gates, size, hidden, layers=1, directions=1, biases=True):
    """Of all layers and directions."""
    rows, made = gates * hidden, []
    for layer in range(layers):
        for _ in range(directions):
            made += [T(rows, hidden * directions if layer else size), T(rows, hidden)]
            made += [T(rows), T(rows)] if biases else []
    return made


def states(name, *shape):
    return [T(*shape), T(*shape)] if name.startswith("lstm") else T(*shape)


def cell(name):
    w_ih, w_hh, b_ih, b_hh = parameters(GATES[name], 3, 2)
    return Op(
        f"{name}_cell",
        (
            S(T(4, 3), states(name, 4, 2), w_ih, w_hh, b_ih, b_hh),
            S(T(1, 3), states(name, 1, 2), w_ih, w_hh),
            S(T(4, 3, layout="transposed"), states(name, 4, 2), w_ih, T(*w_hh.shape, layout="transposed")),
        ),
        **how(f"{name}_cell"),
    )


SIZES = T(3, dtype="int64", values=(3, 2, 1))


def network(name):
    gates = GATES[name]
    return Op(
        name,
        (
            S(T(3, 2, 3), states(name, 1, 2, 2), parameters(gates, 3, 2), True, 1, 0.0, True, False, False),
            S(
                T(2, 3, 2),
                states(name, 4, 2, 2),
                parameters(gates, 2, 2, 2, 2, False),
                False,
                2,
                0.0,
                False,
                True,
                True,
            ),
            S(T(6, 3), SIZES, states(name, 2, 3, 2), parameters(gates, 3, 2, 1, 2), True, 1, 0.0, True, True),
        ),
        **how(name),
    )


OPS = (*(cell(name) for name in GATES), *(network(name) for name in GATES))
