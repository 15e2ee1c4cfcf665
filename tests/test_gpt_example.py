"""examples/gpt.py: the same text on tinytorch and on PyTorch learns alike; the program's data and its completions."""

import numpy as np
import pytest
from load_example import load_example

import tinytorch

STEPS = 20


@pytest.fixture(scope="module")
def gpt():
    return load_example("gpt")


def test_lines_are_sums(gpt):
    train, test = gpt.load(seed=0, train_size=300, test_size=100)
    lines = {"".join(gpt.ALPHABET[t] for t in row) for row in train.tolist() + test.tolist()}
    assert len(lines) == 400  # no sum twice: those for testing do not occur in training
    for line in lines:
        a, b, result = int(line[:3]), int(line[4:7]), int(line[: gpt.QUESTION - 1 : -1])
        assert line[3] + line[7] == "+=" and a + b == result


def test_nothing_is_seen_of_what_follows(gpt):
    """A position's scores depend on the characters up to it, on all of them, and on no others."""
    tinytorch.manual_seed(0)
    model = gpt.GPT().eval()
    tokens = gpt.encode([gpt.write(123, 456)])[:, :-1]
    with tinytorch.no_grad():
        whole = model(tokens).numpy()
        for changed in range(tokens.shape[1]):
            other = tokens.clone()
            other[0, changed] = (other[0, changed] + 1) % len(gpt.ALPHABET)
            differs = (model(other).numpy() != whole).any(axis=-1)[0]
            assert differs.tolist() == [position >= changed for position in range(tokens.shape[1])]


def test_completions_are_what_the_scores_say(gpt):
    """The completion is the argmax of the scores for the whole line, as seen from each of its positions."""
    tinytorch.manual_seed(1)
    model = gpt.GPT().eval()
    _, test = gpt.load(seed=0, train_size=1, test_size=50)
    completed = gpt.complete(model, test[:, : gpt.QUESTION])
    assert tuple(completed.shape) == tuple(test.shape)
    np.testing.assert_array_equal(completed[:, : gpt.QUESTION].numpy(), test[:, : gpt.QUESTION].numpy())
    with tinytorch.no_grad():
        likeliest = model(completed[:, :-1]).argmax(-1)[:, gpt.QUESTION - 1 :]
    np.testing.assert_array_equal(completed[:, gpt.QUESTION :].numpy(), likeliest.numpy())


def losses_of(m, example, weights, batches, dtype):
    """The losses of a training that starts from the given weights and sees the given batches."""
    model = example.GPT().to(getattr(m, dtype))
    model.load_state_dict({name: m.from_numpy(array.copy()) for name, array in weights.items()})
    optimizer = m.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = example.common.warmup_and_cosine(optimizer, 50)
    return [example.train_step(model, optimizer, schedule, m.from_numpy(batch)) for batch in batches]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-6), ("float64", 1e-12)])
def test_learns_like_torch(torch, gpt, dtype, tolerance):
    tinytorch.manual_seed(0)
    model = gpt.GPT().to(getattr(tinytorch, dtype))
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    train, _ = gpt.load(seed=0, train_size=32 * STEPS, test_size=1)
    batches = train.numpy().reshape(STEPS, 32, -1)
    ours = losses_of(tinytorch, gpt, weights, batches, dtype)
    theirs = losses_of(torch, load_example("gpt", "torch"), weights, batches, dtype)
    assert ours[-1] < 0.8 * ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)


def test_learns_to_add(gpt):
    """Sums of one digit each are learnt in a few seconds."""
    tinytorch.manual_seed(0)
    pairs = [(a, b) for a in range(10) for b in range(10)]
    tokens = gpt.encode(gpt.write(a, b) for a, b in pairs)
    model = gpt.GPT(width=32)
    optimizer = tinytorch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = tinytorch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 1)
    assert gpt.accuracy(model, tokens) == 0.0
    for _ in range(200):
        gpt.train_step(model, optimizer, schedule, tokens)
    assert gpt.accuracy(model, tokens) >= 0.99
