"""The models of the suite of training, of what both PyTorch and tinytorch have, as their users write them for speed."""


def make_cnn(torch):
    """Two convolutions, the second one halving the image, and a linear classifier: of (batch, 1, 8, 8)."""
    nn = torch.nn
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(32 * 4 * 4, 10))


def make_resnet(torch, *, depths, bottleneck, classes, small_images):
    """A residual network: ResNet-18 has depths 2, 2, 2, 2; ResNet-50 has 3, 4, 6, 3 and bottlenecks.

    Of small images the first convolution keeps the size, and nothing is pooled after it.
    """
    nn = torch.nn
    expansion = 4 if bottleneck else 1

    def convolve(before, after, taps, stride=1):
        return nn.Conv2d(before, after, taps, stride, taps // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            after = expansion * width
            if bottleneck:
                layers = [convolve(before, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                layers += [convolve(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                layers += [convolve(width, after, 1), nn.BatchNorm2d(after)]
            else:
                layers = [convolve(before, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                layers += [convolve(width, after, 3), nn.BatchNorm2d(after)]
            self.layers, self.relu = nn.Sequential(*layers), nn.ReLU(inplace=True)
            self.shortcut = nn.Identity()
            if stride > 1 or before != after:
                self.shortcut = nn.Sequential(convolve(before, after, 1, stride), nn.BatchNorm2d(after))

        def forward(self, x):
            return self.relu(self.layers(x) + self.shortcut(x))

    if small_images:
        layers = [convolve(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    else:
        layers = [convolve(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            layers.append(Block(before, width, 2 if stage and not block else 1))
            before = expansion * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def _make_block(torch, width, heads, *, causal, gelu="none"):
    """A block of a transformer that normalizes first, of (batch, length, width)."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return self.project(mixed.transpose(1, 2).reshape(batch, length, width))

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=gelu))

    return Block()


def make_gpt(torch, *, vocabulary, length, width, heads, layers):
    """GPT-2: from (batch, length) tokens to scores for the token after each, by the tokens' own embeddings."""
    nn = torch.nn

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            blocks = [_make_block(torch, width, heads, causal=True, gelu="tanh") for _ in range(layers)]
            self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)

        def forward(self, tokens):
            x = self.blocks(self.tokens(tokens) + self.positions.weight)
            return nn.functional.linear(self.norm(x), self.tokens.weight)

    return GPT()


def make_vit(torch, *, image, patch, width, heads, layers, classes):
    """A vision transformer with a class token: ViT-B/16 has 12 layers of 768 and 12 heads, ViT-tiny 192 and 3."""
    nn = torch.nn

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.first = nn.Parameter(torch.zeros(1, 1, width))
            self.positions = nn.Parameter(torch.zeros(1, 1 + (image // patch) ** 2, width))
            self.blocks = nn.Sequential(*[_make_block(torch, width, heads, causal=False) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, images):
            x = self.patches(images).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.positions
            return self.head(self.norm(self.blocks(x)[:, 0]))

    return ViT()


def make_language_lstm(torch, *, vocabulary, width, layers):
    """From (length, batch) tokens to scores for the token after each."""
    nn = torch.nn

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.lstm = nn.Embedding(vocabulary, width), nn.LSTM(width, width, layers)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, tokens):
            return self.head(self.lstm(self.tokens(tokens))[0])

    return Language()


def make_first_output(torch, layer):
    """A recurrent layer without its last state."""

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)[0]

    return First()


def make_gan(torch, *, noise, channels):
    """DCGAN's generator of (batch, 1, 28, 28) from (batch, noise), and a critic of such images."""
    nn = torch.nn
    generator = [nn.Linear(noise, 2 * channels * 7 * 7), nn.ReLU(), nn.Unflatten(1, (2 * channels, 7, 7))]
    generator += [nn.ConvTranspose2d(2 * channels, channels, 4, 2, 1), nn.ReLU()]
    generator += [nn.ConvTranspose2d(channels, 1, 4, 2, 1), nn.Tanh()]
    critic = [nn.Conv2d(1, channels, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(channels, 2 * channels, 4, 2, 1)]
    critic += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2 * channels * 7 * 7, 1)]
    return nn.Sequential(*generator), nn.Sequential(*critic)


def make_odeint(torch, dynamics, parameters):
    """``odeint(y, times)``: y at the last of the times, by the fourth-order Runge-Kutta method, from y at the first.

    ``dynamics(y)`` is dy/dt. Gradients are found by the adjoint method: the state and its adjoint are followed back
    in time, so that nothing is kept of the way there.
    """

    def advance(slope, state, h):
        """A step of ``h`` of a list of tensors."""
        k1 = slope(state)
        k2 = slope([y + h / 2 * k for y, k in zip(state, k1)])
        k3 = slope([y + h / 2 * k for y, k in zip(state, k2)])
        k4 = slope([y + h * k for y, k in zip(state, k3)])
        return [y + h / 6 * (a + 2 * (b + c) + d) for y, a, b, c, d in zip(state, k1, k2, k3, k4)]

    def adjoint_slope(state):
        """Of the state, its adjoint and the parameters' gradients."""
        y, adjoint = state[0].detach().requires_grad_(), state[1]
        with torch.enable_grad():
            slope = dynamics(y)
            pulled = torch.autograd.grad(slope, [y, *parameters], adjoint)
        return [slope.detach(), *(-g for g in pulled)]

    class Odeint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, times, *parameters):
            ctx.times = times
            for before, after in zip(times, times[1:]):
                (y,) = advance(lambda state: [dynamics(state[0])], [y], after - before)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, adjoint):
            (y,) = ctx.saved_tensors
            state = [y, adjoint, *(torch.zeros_like(p) for p in parameters)]
            back = ctx.times[::-1]
            for after, before in zip(back, back[1:]):
                state = advance(adjoint_slope, state, before - after)
            return state[1], None, *state[2:]

    return lambda y, times: Odeint.apply(y, times, *parameters)
