"""torch.distributed.pipelining: refused; a model is whole in each process here."""

import enum

from ..._refusal import refuse_all as _refuse_all

_ADVICE = "models are not split over processes; use torch.nn.parallel.DistributedDataParallel"
_refuse_all(globals(), "torch.distributed.pipelining", "pipeline pipe_split Pipe PipelineStage build_stage Schedule1F1B ScheduleGPipe "
            "ScheduleInterleaved1F1B ScheduleLoopedBFS ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble", _ADVICE)


class SplitPoint(enum.Enum):
    """Where a model would be split. Source: PyTorch, torch.distributed.pipelining.SplitPoint."""

    BEGINNING, END = 1, 2
