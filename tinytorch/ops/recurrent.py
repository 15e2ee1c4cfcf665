"""Recurrent networks: rnn_tanh, rnn_relu, lstm, gru, and their cells (Hochreiter and Schmidhuber 1997; Cho et al. 2014,
arXiv:1406.1078).

What the inputs of a layer contribute to its gates is one product for all steps. The rest is a kernel for each layer and
direction (kernels/api/recurrent.h says what it computes), on rows that lie step by step, of each step no more than of
the one before, as in a packed sequence. The same as a composition, a step at a time, is what other
dtypes and projected states take, and what second derivatives differentiate.

Of half types the CPU's kernel takes inputs, weights and states as they are; the bias, c and the gates are float32.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ..autograd.api import grad
from ..backends.cpu import ffi, lib
from ..dtypes import ALL, FLOATING, float32, int64
from ..tensor import Tensor, attempted, gives_tensors
from .convert import in_dtype
from .create import tensor as make_tensor
from .create import zeros
from .declare import computed, flags_only, function, primitive
from .dropout import dropped
from .join import cat, stack
from .linear import layer_linear

NULL = ffi.NULL
KINDS = ("rnn_tanh", "rnn_relu", "lstm", "gru")
GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


class Steps(NamedTuple):
    """How the rows of a layer lie, and in which direction it goes."""

    kind: str
    sizes: tuple[int, ...]  # rows of each step
    reverse: bool

    def starts(self) -> list[int]:
        """The first row of each step, and after the last one the number of rows."""
        return [0, *itertools.accumulate(self.sizes)]

    def same(self) -> bool:
        """Do all sequences have all steps?"""
        return not self.sizes or self.sizes[0] == self.sizes[-1]

    def ends(self) -> list[int]:
        """The last row of each sequence in the order of time."""
        starts, n = self.starts(), self.sizes[0]
        lengths = [sum(size > k for size in self.sizes) for k in range(n)]
        return [starts[length - 1] + k for k, length in enumerate(lengths)]

    def previous(self, batch: int) -> list[int]:
        """For each row the one before it, in this direction, of the first states with all rows behind them."""
        starts, found = self.starts(), []
        for t, size in enumerate(self.sizes):
            other = t + 1 if self.reverse else t - 1
            known = min(size, self.sizes[other]) if 0 <= other < len(self.sizes) else 0
            found += [batch + starts[other] + k if k < known else k for k in range(size)]
        return found


def _step(kind: str, x, h, c, w, b):
    """h and c after a step, from what its inputs contribute."""
    product = h @ w.mT + b
    if kind == "lstm":
        i, f, g, o = (x + product).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if kind == "gru":
        (xr, xz, xn), (pr, pz, pn) = x.chunk(3, -1), product.chunk(3, -1)
        n = (xn + (xr + pr).sigmoid() * pn).tanh()
        return n + (xz + pz).sigmoid() * (h - n), None
    s = x + product
    return (s.tanh() if kind == "rnn_tanh" else s.relu()), None


def _composed(steps: Steps, x, w, b, h0, c0, projection=None):
    """States after all steps, (rows, H), step by step."""
    starts, made = steps.starts(), []
    h, c = h0[:0], None if c0 is None else c0[:0]
    order = range(len(steps.sizes))
    for t in reversed(order) if steps.reverse else order:
        size = steps.sizes[t]
        known = min(size, h.shape[0])
        h = cat([h[:known], h0[known:size]])
        c = None if c is None else cat([c[:known], c0[known:size]])
        h, c = _step(steps.kind, x[starts[t] : starts[t + 1]], h, c, w, b)
        h = h if projection is None else h @ projection.mT
        made.append((h, c))
    if not made:
        return h, c
    if steps.reverse:
        made.reverse()
    return cat([h for h, _ in made]), None if c0 is None else cat([c for _, c in made])


def _composed_wide(steps: Steps, x, w, b, h0, c0):
    """The same in b's dtype, which may be wider than that of the states h."""
    return _composed(steps, *(t if t is None else in_dtype(t, b.dtype) for t in (x, w, b, h0, c0)))


def _derived(outputs, grads, inputs, edges):
    """The gradients of a composition, with their history; the inputs are aliases that nothing else has."""
    given = [(out, g) for out, g in zip(outputs, grads, strict=True) if g is not None]
    wanted = [x for x, edge in zip(inputs, edges, strict=True) if edge is not None]
    found = iter(grad([o for o, _ in given], wanted, [g for _, g in given], create_graph=True, allow_unused=True))
    return [None if edge is None else next(found) for edge in edges]


def _apart(*inputs):
    return [None if x is None else x.view_as(x) for x in inputs]


_run_forward, _run_backward = gives_tensors(lib.tt_recurrent), gives_tensors(lib.tt_recurrent_backward)


def _handles(*operands):
    """Of tensors as the kernel takes them; and the tensors, which have to live."""
    plain = [None if x is None else x.contiguous() for x in operands]
    return [NULL if x is None else x._h for x in plain], plain


def _forward(steps: Steps, x, w, b, h0, c0):
    handles, kept = _handles(x, w, b, h0, c0)
    code = lib.tt_recurrent_kind(steps.kind.encode())
    sizes, more = list(steps.sizes), ffi.new("tt_array *[2]")
    return _run_forward(code, *handles, len(sizes), sizes, steps.reverse, more)


def _product(a, b):
    return computed(attempted.tt_layer_matmul(a._h, b._h, 0, 0), Tensor.__matmul__, a, b)


def _backward(steps: Steps, g, g_c, w, h0, c0, y, c, gates, edges):
    """The gradients of x, w, b, h0 and c0, without history, those whose edge is not None."""
    handles, kept = _handles(g, g_c, w, y, c, gates, h0, c0)
    code = lib.tt_recurrent_kind(steps.kind.encode())
    sizes, more = list(steps.sizes), ffi.new("tt_array *[2]")
    of_x, of_h, of_first = _run_backward(code, *handles, len(sizes), sizes, steps.reverse, more)
    of_h = of_x if of_h is None else of_h
    batch = h0.shape[0]
    of_w = of_h0 = None
    if steps.same() and steps.sizes:
        rest = of_x.shape[0] - batch
        first = of_h[rest:] if steps.reverse else of_h[:batch]
        if edges[1] is not None:
            later, before = (of_h[:rest], y[batch:]) if steps.reverse else (of_h[batch:], y[:rest])
            of_w = _product(first.mT, h0)
            of_w = of_w + _product(later.mT, before) if rest else of_w
    else:
        index = steps.previous(batch)
        if edges[1] is not None:
            of_w = _product(of_h.mT, cat([h0, y])[make_tensor(index, dtype=int64)])
        starts = {k: row for row, k in enumerate(index) if k < batch}
        first = of_h[make_tensor([starts.get(k, 0) for k in range(batch)], dtype=int64)] if starts else None
        if first is not None and len(starts) < batch:  # sequences without a step
            known = [float(k in starts) for k in range(batch)]
            first = first * make_tensor(known, dtype=first.dtype, device=first.device)[:, None]
    if edges[3] is not None:
        of_h0 = h0 * 0 if first is None else _product(first, w)
        of_h0 = in_dtype(of_h0 + of_first, h0.dtype) if steps.kind == "gru" else of_h0
    return (
        of_x,
        of_w,
        None if edges[2] is None else of_h.sum(0, dtype=ALL[of_h.dtype.compute]),
        of_h0,
        of_first if steps.kind == "lstm" else None,
    )


# What the inputs contribute, x, is as large as the gates, and only second derivatives ask for it. So they compute it
# anew, from what it was made of: `made_of`, `w_ih` and `b_ih` get their gradients through x.


def _contributed(made_of, w_ih, b_ih, dtype):
    return layer_linear(*(t if t is None else in_dtype(t, dtype) for t in (made_of, w_ih, b_ih)))


def _lstm_formula(g_y, g_c, w, b, h0, c0, made_of, w_ih, b_ih, how, edges):
    inputs = x, w, b, h0, c0 = _apart(_contributed(made_of, w_ih, b_ih, w.dtype), w, b, h0, c0)
    return *_derived(_composed_wide(how, x, w, b, h0, c0), (g_y, g_c), inputs, edges[:5]), None, None, None


def _lstm_first_order(g_y, g_c, w, h0, c0, how, y, c, gates, edges):
    return *_backward(how, g_y, g_c, w, h0, c0, y, c, gates, edges), None, None, None


@primitive(
    outputs=("y", "c"),
    extra=("gates",),
    inputs=("x", "w", "b", "h0", "c0", "made_of", "w_ih", "b_ih"),
    vjp=_lstm_formula,
    first_order=_lstm_first_order,
)
def _lstm_layer(x, w, b, h0, c0, made_of, w_ih, b_ih, how):
    return _forward(how, x, w, b, h0, c0)


def _rnn_formula(g, w, b, h0, made_of, w_ih, b_ih, how, edges):
    inputs = x, w, b, h0 = _apart(_contributed(made_of, w_ih, b_ih, w.dtype), w, b, h0)
    return *_derived(_composed_wide(how, x, w, b, h0, None)[:1], (g,), inputs, edges[:4]), None, None, None


def _rnn_first_order(g, w, h0, how, out, gates, edges):
    return *_backward(how, g, None, w, h0, None, out, None, gates, edges)[:4], None, None, None


@primitive(
    extra=("gates",),
    inputs=("x", "w", "b", "h0", "made_of", "w_ih", "b_ih"),
    vjp=_rnn_formula,
    first_order=_rnn_first_order,
)
def _rnn_layer(x, w, b, h0, made_of, w_ih, b_ih, how):
    y, _, gates = _forward(how, x, w, b, h0, None)
    return y, gates


def _layer(steps: Steps, x, h0, c0, w_ih, w_hh, b_ih=None, b_hh=None, projection=None):
    """One layer in one direction: its states after each step, (rows, H), and c's, which may be of a wider dtype."""
    if b_hh is None:
        b_hh = zeros(w_hh.shape[0], dtype=w_hh.dtype, device=w_hh.device)
    elif steps.kind != "gru":  # it does not matter which product they are added to
        b_ih, b_hh = None, b_ih + b_hh
    made_of = x, w_ih, b_ih
    x = layer_linear(*made_of)
    if x._h.ndim != 2:
        missing = x._h.ndim < 2 and steps.kind == "gru"
        raise _wrong_shape(missing)(f"{steps.kind}: expected inputs of two dimensions, got {x._h.ndim}")
    if projection is not None or not FLOATING[x._h.dtype]:
        return _composed(steps, x, w_hh, b_hh, h0, c0, projection)
    dtype, wide = x.dtype, ALL[x.dtype.compute]
    stored = wide if x.is_cuda else dtype
    x, w, h0 = (in_dtype(t, stored) for t in (x, w_hh, h0))
    b, c0 = (t if t is None else in_dtype(t, wide) for t in (b_hh, c0))
    if steps.kind == "lstm":
        y, c, _ = _lstm_layer(x, w, b, h0, c0, *made_of, steps)
        return in_dtype(y, dtype), c
    return in_dtype(_rnn_layer(x, w, b, h0, *made_of, steps)[0], dtype), None


def _last(states, steps: Steps, batch: int):
    """The states after the last step of each sequence."""
    if steps.reverse:
        return states[:batch]
    if steps.same():
        return states[states.shape[0] - batch :]
    return states[make_tensor(steps.ends(), dtype=int64, device=states.device)]


def _wrong_shape(missing: bool) -> type[Exception]:
    """The error for a wrong shape; ``missing``: PyTorch asks there for the size of a dimension that is not there."""
    return IndexError if missing else RuntimeError


def _network(kind: str, x, sizes, hx, params, biases: bool, layers: int, p: float, train: bool, both: bool):
    """All layers on rows that lie step by step: the rows of the last one, and the last states of all."""
    directions = 2 if both else 1
    per = (4 if biases else 2) + (kind == "lstm" and hx[0].shape[-1] != hx[1].shape[-1])
    if len(params) != per * layers * directions:
        raise RuntimeError(
            f"{kind}: expected {per * layers * directions} parameters for {layers} layers, got {len(params)}"
        )
    for h in hx:
        if h._h.ndim != 3 or h.shape[0] != layers * directions:
            shape = f"({layers * directions}, N, H)"
            raise _wrong_shape(h._h.ndim < 1)(f"{kind}: expected first states of shape {shape}, got {tuple(h.shape)}")
    batch = sizes[0] if sizes else hx[0].shape[1]
    last: list = []
    for layer in range(layers):
        made = []
        for direction in range(directions):
            k = layer * directions + direction
            own = list(params[k * per : (k + 1) * per])
            if not biases:
                own[2:2] = None, None
            steps = Steps(kind, sizes, direction == 1)
            h, c = _layer(steps, x, hx[0][k], hx[1][k] if kind == "lstm" else None, *own)
            made.append(h)
            last.append([in_dtype(_last(t, steps, batch), h.dtype) for t in (h, c) if t is not None])
        x = made[0] if len(made) == 1 else cat(made, -1)
        if p > 0 and train and layer + 1 < layers:
            x = dropped(x, p)
    return x, [stack(states) for states in zip(*last, strict=True)]


def _check_tensors(kind: str, input, states, params) -> None:
    for name, x in (("input", input), *(("hx", h) for h in states), *(("params", t) for t in params)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{kind}(): argument '{name}' must be Tensor, not {type(x).__name__}")


def _check_dtypes(kind: str, *tensors) -> None:
    for x in tensors:
        if not (x.dtype.is_floating_point or x.dtype.is_complex or kind.startswith("rnn")):
            raise NotImplementedError(f"{kind}: not implemented for '{x.dtype.name}'")


def _states(kind: str, input, hx, params, **flags) -> tuple:
    """h, or h and c; the arguments are checked."""
    flags_only(kind, **flags)
    states = tuple(hx) if kind == "lstm" else (hx,)
    if kind == "lstm" and len(states) != 2:
        raise RuntimeError(f"lstm expects two hidden states, got {len(states)}")
    _check_tensors(kind, input, states, params)
    for state in states:
        state.size(2 if kind == "lstm" else 0)  # IndexError where there is no such dimension
    if flags.get("batch_first") and input._h.ndim < 2:  # whose first two are exchanged before all else
        raise IndexError(f"{kind}: expected an input of 3 dimensions, got {input._h.ndim}")
    _check_dtypes(kind, input, *states, *params)
    return states


def _padded(kind, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    flags = {"has_biases": has_biases, "train": train, "bidirectional": bidirectional, "batch_first": batch_first}
    states = _states(kind, input, hx, params, **flags)
    if input._h.ndim != 3:
        ndim, gated = input._h.ndim, kind in ("lstm", "gru")
        full = input._h.numel > 0
        missing = (
            ndim < 2
            and kind == "lstm"
            and full
            or ndim == 2
            and gated
            and full
            and (kind == "lstm" and input.dtype is float32 or all(p.dtype is input.dtype for p in params))
        )
        raise _wrong_shape(missing)(f"{kind}: expected an input of 3 dimensions, got {ndim}")
    x = input.transpose(0, 1) if batch_first else input
    steps, batch, size = x.shape
    options = has_biases, num_layers, dropout, train, bidirectional
    out, last = _network(kind, x.reshape(steps * batch, size), (batch,) * steps, states, params, *options)
    out = out.unflatten(0, (steps, batch))
    return (out.transpose(0, 1) if batch_first else out, *last)


def _packed(kind, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    states = _states(kind, data, hx, params, has_biases=has_biases, train=train, bidirectional=bidirectional)
    if not isinstance(batch_sizes, Tensor):
        raise TypeError(f"{kind}(): argument 'batch_sizes' must be Tensor, not {type(batch_sizes).__name__}")
    if batch_sizes.dtype is not int64 or batch_sizes._h.ndim != 1:
        missing = batch_sizes._h.ndim < 1
        raise _wrong_shape(missing)(f"{kind}: expected batch_sizes as a vector of int64, got {batch_sizes!r}")
    options = has_biases, num_layers, dropout, train, bidirectional
    out, last = _network(kind, data, tuple(batch_sizes.tolist()), states, params, *options)
    return out, *last


def _declare(kind: str):
    def network(
        input=None,
        hx=None,
        params=None,
        has_biases=None,
        num_layers=None,
        dropout=None,
        train=None,
        bidirectional=None,
        batch_first=None,
        *,
        data=None,
        batch_sizes=None,
    ):
        options = has_biases, num_layers, dropout, train, bidirectional, batch_first
        if isinstance(has_biases, (list, tuple)):  # the packed form, by position
            run, given = _packed, (input, hx, params, *options)
        elif data is not None:
            run, given = _packed, (data, batch_sizes, hx, params, *options[:-1])
        else:
            run, given = _padded, (input, hx, params, *options)
        if any(value is None for value in given):
            raise TypeError(f"{kind}() received an invalid combination of arguments: one is missing")
        return run(kind, *given)

    several = "a list of h and c" if kind == "lstm" else "h"
    network.__name__ = network.__qualname__ = kind
    network.__doc__ = f"""The recurrent network that ``nn.{"RNN" if "_" in kind else kind.upper()}`` computes. Its
    arguments by position are those below or, of packed sequences, ``data, batch_sizes, hx, params, has_biases,
    num_layers, dropout, train, bidirectional``. Follows ``torch.{kind}``.

    Args:
        input: a tensor (L, N, size), or (N, L, size) with ``batch_first``
        hx: the first states, {several}, (layers times directions, N, H)
        params: a list of the parameters: of each layer and direction w_ih, w_hh, b_ih, b_hh
        has_biases: whether the biases are among them
        num_layers: how many layers
        dropout: the probability of a number between two layers to become 0, in training
        train: whether there is dropout
        bidirectional: whether each layer also runs from the end to the beginning
        batch_first: whether N is the first dimension of input and output
        data: the rows of packed sequences, (rows, size)
        batch_sizes: a tensor of the number of rows of each step
    Returns:
        The last layer's states after each step, and the last states of all layers.
    Raises:
        TypeError: an argument is missing
        RuntimeError: the number of parameters is another
    """
    return function(network, pure=False)


rnn_tanh, rnn_relu, lstm, gru = (_declare(kind) for kind in KINDS)


def _cell(kind: str, input, states, w_ih, w_hh, b_ih, b_hh):
    name = f"{kind}_cell"
    _check_tensors(name, input, states, (w_ih, w_hh, *[b for b in (b_ih, b_hh) if b is not None]))
    hidden = w_hh.size(1)
    gates = GATES[kind] * hidden
    if not kind.startswith("rnn"):
        w_ih.size(1)  # before the number of rows: IndexError for a vector
    if w_ih.size(0) != gates:
        raise RuntimeError(f"{name}: weight_ih first dim must be {gates}, but got {w_ih.shape[0]}")
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"{name}: input has inconsistent input_size: got {input.size(1)}, expected {w_ih.size(1)}")
    for state in states:
        if input.size(0) != state.size(0):
            raise RuntimeError(f"{name}: Input batch size {input.size(0)} doesn't match hidden size {state.size(0)}")
        if state.size(1) != hidden:
            raise RuntimeError(f"{name}: hidden has inconsistent hidden_size: got {state.size(1)}, expected {hidden}")
    _check_dtypes(name, input, *states, w_ih, w_hh)
    if tuple(w_ih.shape) != (gates, input.shape[-1]) or tuple(w_hh.shape) != (gates, hidden):
        raise RuntimeError(
            f"{name}: input {tuple(input.shape)} and state {tuple(states[0].shape)} do not match weights "
            f"{tuple(w_ih.shape)} and {tuple(w_hh.shape)}"
        )
    if input._h.ndim != 2 or any(tuple(s.shape) != (input.shape[0], hidden) for s in states):
        raise RuntimeError(
            f"{name}: input {tuple(input.shape)} and states {[tuple(s.shape) for s in states]} do not match: expected "
            "(N, size) and (N, H)"
        )
    if (b_ih is None) != (b_hh is None):
        raise RuntimeError(f"{name}: either both biases are given or none")
    steps = Steps(kind, (input.shape[0],), False)
    h, c = _layer(steps, input, states[0], states[1] if kind == "lstm" else None, w_ih, w_hh, b_ih, b_hh)
    return h, c if c is None else in_dtype(c, h.dtype)


@function
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: h and c after it, of input (N, size) and ``hx``, the h and c (N, H) before. Follows
    ``torch.lstm_cell``.

    Args:
        hx: a list of h and c
        w_ih: (4 H, size)
        w_hh: (4 H, H)
        b_ih: (4 H), or None
        b_hh: (4 H), or None
    Returns:
        A tuple of two tensors (N, H).
    Raises:
        RuntimeError: the sizes do not match
    """
    if not isinstance(hx, (list, tuple)) or len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@function
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU: h (N, H) after it, of input (N, size) and ``hx``, the h before. Follows ``torch.gru_cell``.

    Args:
        hx: (N, H)
        w_ih: (3 H, size)
        w_hh: (3 H, H)
        b_ih: (3 H), or None
        b_hh: (3 H), or None
    Returns:
        A tensor (N, H).
    Raises:
        RuntimeError: the sizes do not match
    """
    return _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@function
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(input w_ih^T + b_ih + hx w_hh^T + b_hh): one step of a recurrent network. Follows ``torch.rnn_tanh_cell``.
    Otherwise like ``gru_cell``.

    Args:
        w_ih: (H, size)
        w_hh: (H, H)
        b_ih: (H), or None
        b_hh: (H), or None
    """
    return _cell("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@function
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """relu(input w_ih^T + b_ih + hx w_hh^T + b_hh): one step of a recurrent network. Follows ``torch.rnn_relu_cell``.
    Otherwise like ``rnn_tanh_cell``."""
    return _cell("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
