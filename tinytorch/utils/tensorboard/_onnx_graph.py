"""A model in an ONNX file as the graph that TensorBoard shows."""

from __future__ import annotations

import importlib

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef


def load_onnx_graph(fname) -> GraphDef:
    """The graph in a file, which the onnx package reads. ModuleNotFoundError without it."""
    return parse(importlib.import_module("onnx").load(fname).graph)


def parse(graph) -> GraphDef:
    """A node for each input and output, with its dtype and shape, and for each operator, named by its first output."""
    nodes = []
    for value in (*graph.input, *graph.output):
        kind = value.type.tensor_type
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=d.dim_value) for d in kind.shape.dim])
        attributes = {"dtype": AttrValue(type=kind.elem_type), "shape": AttrValue(shape=shape)}
        nodes.append(NodeDef(name=value.name, op="Variable", input=[], attr=attributes))
    for node in graph.node:
        told = [" = ".join(str(value) for _, value in a.ListFields()) for a in node.attribute]
        attributes = {"parameters": AttrValue(s=", ".join(told).encode())}
        nodes.append(NodeDef(name=node.output[0], op=node.op_type, input=node.input, attr=attributes))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))
