# Averaging over groups of growing size: refused by name.
from ...._refusal import refuse_all

refuse_all(globals(), "torch.distributed.algorithms.model_averaging.hierarchical_model_averager", "HierarchicalModelAverager",
           "use averagers.PeriodicModelAverager over one group")
