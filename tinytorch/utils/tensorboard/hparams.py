"""Summaries of hyperparameters: an experiment, and the beginning and end of a session of it."""

from __future__ import annotations

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
from tensorboard.plugins.hparams.metadata import (
    EXPERIMENT_TAG,
    PLUGIN_DATA_VERSION,
    PLUGIN_NAME,
    SESSION_END_INFO_TAG,
    SESSION_START_INFO_TAG,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

from ...tensor import Tensor
from ._convert_np import make_np


def _summary(tag: str, **content) -> Summary:
    data = HParamsPluginData(version=PLUGIN_DATA_VERSION, **content).SerializeToString()
    plugin = SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=data)
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])


def _typed(value) -> tuple[str, str]:
    """The field of a value and the name of its type: a bool is a number, as for PyTorch."""
    if isinstance(value, (int, float, Tensor)):
        return "number_value", "DATA_TYPE_FLOAT64"
    if isinstance(value, str):
        return "string_value", "DATA_TYPE_STRING"
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None) -> tuple[Summary, Summary, Summary]:
    """Of an experiment, the beginning of a session with these hyperparameters, and its end. ``hparam_domain_discrete``
    lists all values that some of them may have. TypeError for what is no dictionary, or values of another type;
    ValueError for values that are neither number, text, bool nor tensor."""
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, values in domains.items():
        fitting = name in hparam_dict and isinstance(values, list)
        if not fitting or not all(isinstance(v, type(hparam_dict[name])) for v in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    start, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        field, kind = _typed(value)
        setattr(start.hparams[name], field, float(make_np(value).flat[0]) if isinstance(value, Tensor) else value)
        info = HParamInfo(name=name, type=DataType.Value(kind))
        if name in domains:
            values = [struct_pb2.Value(**{field: v}) for v in domains[name]]
            info.domain_discrete.CopyFrom(struct_pb2.ListValue(values=values))
        infos.append(info)
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    return (
        _summary(EXPERIMENT_TAG, experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
        _summary(SESSION_START_INFO_TAG, session_start_info=start),
        _summary(SESSION_END_INFO_TAG, session_end_info=SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))),
    )
