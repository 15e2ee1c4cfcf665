"""One training step of two of timm's models, their weights and the data drawn by NumPy: the losses before and after."""

import numpy as np
import timm
import torch
import torch.nn.functional as F


def losses(model, size):
    random = np.random.default_rng(0)
    with torch.no_grad():
        for p in model.parameters():
            values = random.standard_normal(tuple(p.shape)) * (0.5 / max(1, p[0].numel()) ** 0.5)
            p.copy_(torch.from_numpy(values) + (1.0 if p.ndim == 1 else 0.0))
    x = torch.from_numpy(random.standard_normal((2, 3, size, size))).float()
    y = torch.tensor([1, 3])
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(2):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


vit = timm.models.VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4, num_classes=5)
for model, size in ((vit, 32), (timm.create_model("resnet50", num_classes=5), 64)):
    print(type(model).__name__, len(model.state_dict()), *losses(model, size))
