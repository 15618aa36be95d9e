"""torch.onnx: importable; exporting is refused."""

import enum as _enum

from .._refusal import refuse_all as _refuse_all
from . import operators, symbolic_helper

_ADVICE = ("there is no graph of PyTorch's operators to export; save the state_dict with torch.save and export with PyTorch "
           "itself, or "
           "convert the checkpoint for MindSpore and use mindspore.export")

_refuse_all(globals(), "torch.onnx", "export dynamo_export export_to_pretty_string unconvertible_ops register_custom_op", _ADVICE)


class TensorProtoDataType(_enum.IntEnum):
    """Numbers of ONNX's element types (the ONNX format, TensorProto.DataType)."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16 = range(11)
    DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(11, 17)
    FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = range(17, 21)


class OperatorExportTypes(_enum.IntEnum):
    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(_enum.IntEnum):
    EVAL, PRESERVE, TRAINING = range(3)


class OnnxExporterError(RuntimeError):
    """What exporting raises in PyTorch."""


class ONNXProgram:
    """The type of an exported program, for annotations; none is ever made."""


def is_in_onnx_export():
    """False. Source: PyTorch, torch.onnx.is_in_onnx_export."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Accepted: an export would use it, and exports are refused. ValueError for a name without a namespace. Source: PyTorch,
    torch.onnx.register_custom_op_symbolic."""
    if "::" not in symbolic_name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name")


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """See register_custom_op_symbolic."""


def select_model_mode_for_export(model, mode):
    import contextlib

    return contextlib.nullcontext()
