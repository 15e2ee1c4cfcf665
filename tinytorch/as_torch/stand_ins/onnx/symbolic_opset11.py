"""``torch.onnx.symbolic_opset11``: nothing is exported, and no symbolic is there."""

__all__: list[str] = []
