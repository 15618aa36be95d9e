"""torch.export: importable; exporting is refused."""

import enum as _enum

from .._refusal import refuse_all as _refuse_all

_ADVICE = ("there is no export of whole programs; run the module as it is, trace it with torch.fx.symbolic_trace, or save its "
           "state_dict "
           "with torch.save")

_refuse_all(globals(), "torch.export", "export export_for_training load save unflatten register_dataclass draft_export", _ADVICE)


class ExportedProgram:
    """The type of an exported program, for annotations and isinstance; none is ever made."""


class Dim:
    """The name of a size that may vary. Source: PyTorch, torch.export.Dim."""

    class _Hint(_enum.Enum):
        AUTO, STATIC, DYNAMIC = range(3)

    AUTO, STATIC, DYNAMIC = _Hint.AUTO, _Hint.STATIC, _Hint.DYNAMIC

    def __init__(self, name, *, min=None, max=None):
        self.__name__, self.min, self.max = name, min, max


def dims(*names, min=None, max=None):
    """One Dim for each name. Source: PyTorch, torch.export.dims."""
    return tuple([Dim(name, min=min, max=max) for name in names])
