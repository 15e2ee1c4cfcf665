"""Recurrent layers and cells. Follows ``torch.nn.modules.rnn``."""

from __future__ import annotations

import math
import numbers
import warnings

from ..autograd.modes import current
from ..ops import recurrent
from ..ops.create import empty, zeros
from ..tensor import Tensor
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

_MOST_LAYERS = 1 << 20
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _reset(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: their parameters, and how they are run. Follows ``torch.nn.RNNBase``."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        for name, value, kind in (
            ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
            ("bias", bias, bool),
            ("batch_first", batch_first, bool),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if num_layers > _MOST_LAYERS:
            raise ValueError(f"num_layers must be at most {_MOST_LAYERS}, got {num_layers}")
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        rows, out = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                size = input_size if layer == 0 else out * (2 if bidirectional else 1)
                shapes = {"weight_ih": (rows, size), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size > 0:
                    shapes["weight_hr"] = proj_size, hidden_size
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    self.register_parameter(names[-1], Parameter(empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        _reset(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: the kernels take parameters where they lie."""

    @property
    def _flat_weights(self) -> list[Tensor]:
        own = self.__dict__.get("_own_weights") or {}
        return [own[name] if name in own else getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        named = zip(self._flat_weights_names, weights)
        self.__dict__["_own_weights"] = {name: w for name, w in named if w is not getattr(self, name, None)}

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """RuntimeError or ValueError where ``input`` does not fit the parameters."""
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype is not weight.dtype and current().autocast is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if batch_sizes is not None and input.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """RuntimeError where ``hx`` has another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of h."""
        return self._sizes_of_states(self._batch(input, batch_sizes))[0]

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        return int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)

    def _sizes_of_states(self, batch: int) -> list[tuple[int, int, int]]:
        """The shapes of h, and of an LSTM's c."""
        several = self.num_layers * (2 if self.bidirectional else 1)
        h = several, batch, self.proj_size or self.hidden_size
        return [h, (several, batch, self.hidden_size)] if self.mode == "LSTM" else [h]

    def _check_states(self, states: list[Tensor], batch: int) -> None:
        message = "Expected hidden size {}, got {}"
        for k, (state, shape) in enumerate(zip(states, self._sizes_of_states(batch), strict=True)):
            if self.mode == "LSTM":
                message = f"Expected hidden[{k}] size {{}}, got {{}}"
            self.check_hidden_size(state, shape, message)

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        """Checks the input and the first states against the parameters."""
        self.check_input(input, batch_sizes)
        self._check_states(list(hidden) if self.mode == "LSTM" else [hidden], self._batch(input, batch_sizes))

    def permute_hidden(self, hx, permutation: Tensor | None):
        """First or last states in another order of the sequences."""
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)

    def _states_of(self, hx, batched: bool) -> list[Tensor]:
        """What was given as first states, each of three dimensions."""
        lstm, ndim = self.mode == "LSTM", 3 if batched else 2
        states = list(hx) if lstm else [hx]
        if any(h.dim() != ndim for h in states):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            found = f"({states[0].dim()}-D, {states[-1].dim()}-D) tensors" if lstm else f"{hx.dim()}-D tensor"
            raise RuntimeError(
                f"For {kind} input, hx{' and cx' if lstm else ''} should also be {ndim}-D but got {found}"
            )
        return states if batched else [h.unsqueeze(1) for h in states]

    def _run(self, input, hx):
        """The output, and the last states as a list, of a tensor or of packed sequences."""
        packed = isinstance(input, PackedSequence)
        x, sizes, order, back = input if packed else (input, None, None, None)
        if not packed and x.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {x.dim()}D instead")
        batched = packed or x.dim() == 3
        of_batch = 0 if self.batch_first else 1
        if not batched:
            x = x.unsqueeze(of_batch)
        batch = int(sizes[0]) if packed else x.size(of_batch)
        if hx is None:
            states = [zeros(s, dtype=x.dtype, device=x.device) for s in self._sizes_of_states(batch)]
        else:
            states = self._states_of(hx, batched)
            if order is not None:
                states = [h.index_select(1, order) for h in states]
        self.check_input(x, sizes)
        self._check_states(states, batch)
        network = getattr(recurrent, self.mode.lower())
        first = states if self.mode == "LSTM" else states[0]
        options = self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        if packed:
            out, *last = network(x, sizes, first, self._flat_weights, *options)
            out = PackedSequence(out, sizes, order, back)
            return out, [h if back is None else h.index_select(1, back) for h in last]
        out, *last = network(x, first, self._flat_weights, *options, self.batch_first)
        return (out, last) if batched else (out.squeeze(of_batch), [h.squeeze(1) for h in last])


def _arguments(args: tuple, kwargs: dict) -> None:
    if "proj_size" in kwargs or len(args) > 7:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h = tanh(x W_ih^T + b_ih + h W_hh^T + b_hh), or relu, in one layer or several: of inputs (L, N, input_size), or
    (N, L, input_size) with ``batch_first``, or packed sequences. Follows ``torch.nn.RNN``."""

    def __init__(self, *args, **kwargs):
        _arguments(args, kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        out, (last,) = self._run(input, hx)
        return out, last


class LSTM(RNNBase):
    """i, f, o = sigmoid, g = tanh of x W_ih^T + b_ih + h W_hh^T + b_hh; c = f c + i g and h = o tanh(c), in one layer
    or several: of inputs (L, N, input_size), or (N, L, input_size) with ``batch_first``, or packed sequences. Follows
    ``torch.nn.LSTM``."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of c."""
        return self._sizes_of_states(self._batch(input, batch_sizes))[1]

    def forward(self, input, hx=None):
        out, last = self._run(input, hx)
        return out, tuple(last)


class GRU(RNNBase):
    """r, z = sigmoid of x W_ih^T + b_ih + h W_hh^T + b_hh; n = tanh(x W_in^T + b_in + r (h W_hn^T + b_hn)) and
    h = (1 - z) n + z h, in one layer or several: of inputs (L, N, input_size), or (N, L, input_size) with
    ``batch_first``, or packed sequences. Follows ``torch.nn.GRU``."""

    def __init__(self, *args, **kwargs):
        _arguments(args, kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        out, (last,) = self._run(input, hx)
        return out, last


class RNNCellBase(Module):
    """What the cells share. Follows ``torch.nn.RNNCellBase``."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size

        def parameter(*shape, wanted=True):
            return Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None

        self.weight_ih, self.weight_hh = parameter(rows, input_size), parameter(rows, hidden_size)
        self.register_parameter("bias_ih", parameter(rows, wanted=bias))
        self.register_parameter("bias_hh", parameter(rows, wanted=bias))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        _reset(self, self.hidden_size)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(self, cell, input: Tensor, states: tuple[Tensor, ...] | None, n: int):
        """The states after ``cell``, from ``n`` states; with or without a batch."""
        name = self._get_name()
        for what, x in (("input", input), *(("hidden", h) for h in states or ())):
            if x.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {x.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if states is None:
            states = (zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device),) * n
        elif not batched:
            states = tuple(h.unsqueeze(0) for h in states)
        if x.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}")
        for k, h in enumerate(states):
            if h.size(0) != x.size(0):
                raise RuntimeError(f"Input batch size {x.size(0)} doesn't match hidden{k} batch size {h.size(0)}")
            if h.size(-1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{k} has inconsistent hidden_size: got {h.size(-1)}, expected {self.hidden_size}"
                )
        first = states if n > 1 else states[0]
        made = cell(x, first, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        made = made if n > 1 else (made,)
        return made if batched else tuple(h.squeeze(0) for h in made)


class RNNCell(RNNCellBase):
    """One step of an RNN: h of input (N, input_size) and h (N, hidden_size). Follows ``torch.nn.RNNCell``."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        cells = {"tanh": recurrent.rnn_tanh_cell, "relu": recurrent.rnn_relu_cell}
        if self.nonlinearity not in cells:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(cells[self.nonlinearity], input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: h and c of input (N, input_size) and of h and c (N, hidden_size). Follows
    ``torch.nn.LSTMCell``."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return tuple(self._step(recurrent.lstm_cell, input, None if hx is None else tuple(hx), 2))


class GRUCell(RNNCellBase):
    """One step of a GRU: h of input (N, input_size) and h (N, hidden_size). Follows ``torch.nn.GRUCell``."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(recurrent.gru_cell, input, None if hx is None else (hx,), 1)[0]
