"""Random programs on slices of a few buffers, fused and eager:   python -m fuse.buffers FIRST COUNT [compiled|emulator]

Buffers are made, written in part, read in part, written through views and by the tape, and dropped, in every order.
Prints the first program whose results differ; a signal ends the process, after the program's number was printed.
"""

import random
import sys

import tinytorch as tt
from gpu.emulator import Emulator
from tinytorch.backends.cuda import runtime

SIZES = (6, 24, 5000)
MAKERS = ("tt.zeros({n})", "tt.full(({n},), 2.)", "x.clone()", "x * 2", "tt.empty({n}).copy_(x)", "x.new_ones({n})")
WRITES = ("{a}.add_({v})", "{a}.mul_({v})", "{a}.copy_({v})", "{b}[{i}] = {v}", "{a}.sigmoid_()", "{a}.mul_(p)")
VALUES = ("1.5", "{c}", "{c} * 2", "{c}.sin()", "{c}.sum()", "{c}.flip(0)", "{c}.cumsum(0)", "{c} + {c}")
READS = ("{c} * 2", "{c}.sum()", "{c}.exp() + {c}", "({c} * {c}).mean()", "{c} > 1", "{c}.to(tt.float64)")


def program(seed):
    """The size of its buffers, and its lines."""
    rng = random.Random(seed)
    n = rng.choice(SIZES)
    begins, length = rng.sample(range(n // 2), 2), n // 2
    slices = [f"{k}:{k + length}" for k in (*begins, 0)]
    whole = (":", "1:", ":-1", "::2")
    names, lines, made, results = [], [], 0, 0
    for _ in range(rng.randint(3, 10)):
        kind = rng.choice(("make", "write", "write", "write", "read", "read", "view", "drop"))
        if kind == "make" or not names:
            names.append(f"b{made}")
            lines.append(f"b{made} = " + rng.choice(MAKERS).format(n=n))
            made += 1
            continue
        b, i, j = rng.choice(names), rng.choice(slices), rng.choice(slices)
        if b.startswith("v"):
            a = b
            i = j = ":"
        else:
            i = j = rng.choice(whole) if rng.random() < 0.3 else i
            a = f"{b}[{i}]"
        others = [name for name in names if name.startswith("b") and not b.startswith("v")] or [b]
        c = f"{rng.choice(others)}[{j}]"
        if kind == "write":
            lines.append(rng.choice(WRITES).format(a=a, b=b, i=i, v=rng.choice(VALUES).format(c=c)))
        elif kind == "read":
            lines.append(f"r{results} = " + rng.choice(READS).format(c=a))
            results += 1
        elif kind == "view":
            names.append(f"v{made}")
            lines.append(f"v{made} = {b}[{i}]")
            made += 1
        else:
            names.remove(b)
            lines.append(f"del {b}")
    if rng.random() < 0.5:
        lines += [f"del {name}" for name in names]
    return n, lines


def run(n, lines, fused, device):
    """What is left at the end, and p's gradient: bytes, or the error."""
    x = tt.linspace(-1, 1, n, device=device)
    p = tt.full((), 0.5, device=device, requires_grad=True)
    space = {"tt": tt, "x": x, "p": p}
    text = "\n".join(lines)
    try:
        with tt.device(device):
            if fused:
                with tt.fuse():
                    exec(text, space)
                    backward(space)
            else:
                exec(text, space)
                backward(space)
    except RuntimeError as error:
        return str(error)
    kept = {name: value for name, value in space.items() if isinstance(value, tt.Tensor)}
    kept["gradient"] = p.grad if p.grad is not None else x
    return {name: (str(t.dtype), t.detach().cpu().numpy().tobytes()) for name, t in kept.items()}


def backward(space):
    """From everything that has a graph."""
    for value in [v for name, v in space.items() if name[0] in "bvr" and name[1:].isdigit()]:
        if value.requires_grad and value.grad_fn is not None:
            value.sum().backward(retain_graph=True)


def main(first, count, device="cpu", compiled=False):
    """Programs from number `first` on."""
    ran = 0
    for seed in range(first, first + count):
        n, lines = program(seed)
        print(seed, end=" ", flush=True)
        want = run(n, lines, False, device)
        ran += isinstance(want, dict)
        for again in range(4 if compiled else 2):
            if again == 3:
                tt.fuse.wait(60)
            got = run(n, lines, True, device)
            if got != want:
                print("differ:", *lines, sep="\n")
                if isinstance(got, dict) and isinstance(want, dict):
                    print("in", [name for name in want if got.get(name) != want[name]])
                else:
                    print(got if isinstance(got, str) else "", want if isinstance(want, str) else "", sep=" | ")
                return 1
    print(f"\n{ran} of {count} programs without an error")
    return 0


def emulated():
    """Puts the emulated device in the place of a GPU."""
    runtime.use_driver(Emulator())
    return "cuda"


if __name__ == "__main__":
    where = emulated() if "emulator" in sys.argv else "cpu"
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), where, "compiled" in sys.argv))
