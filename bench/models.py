"""Models of what both PyTorch and tinytorch have, for benchmarks of training."""

import math


def perceptron(nn, *widths):
    """Linear layers of these widths, with ReLU between them."""
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def make_gpt(torch, *, vocabulary, length, width, heads, layers):
    """A decoder-only transformer: from (batch, length) tokens to scores for the token after each. Attention is written
    out, with a mask."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x, future):
            batch = x.shape[0]
            qkv = self.qkv(x).view(batch, length, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(width // heads))
            weights = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
            return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))

        def forward(self, x, future):
            x = x + self.attend(self.norm1(x), future)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1))

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions.weight
            for block in self.blocks:
                x = block(x, self.future)
            return self.head(self.norm(x))

    return GPT()


def small_products(torch, w_requires_grad):
    """A step of chain_of_products, of (4, 4)."""
    x = torch.randn(4, 4, requires_grad=True)
    w = torch.full((4, 4), 1.01, requires_grad=w_requires_grad)  # near 1: the products stay normal
    return chain_of_products(x, w, torch.ones(4, 4))


def chain_of_products(x, w, gradient):
    """A step of 50 multiplications of ``x`` by ``w``, forward and backward from ``gradient``: it returns x.grad."""

    def step():
        x.grad = w.grad = None
        y = x
        for _ in range(50):
            y = y * w
        y.backward(gradient)
        return x.grad

    return step
