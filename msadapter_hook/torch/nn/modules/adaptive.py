# AdaptiveLogSoftmaxWithLoss: frequent classes in a head, rare ones in clusters of smaller projections.
from collections import namedtuple

from ... import log_softmax
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Approximate softmax over many classes sorted by frequency. Source: PyTorch, torch.nn.AdaptiveLogSoftmaxWithLoss.

    forward: (N, in_features) or (in_features), (N) or () → (log probabilities of the targets, mean loss).
    ValueError unless `cutoffs` are distinct rising positive integers below n_classes.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        kind = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for cluster in range(self.n_clusters):
            hidden = int(in_features // div_value ** (cluster + 1))
            size = self.cutoffs[cluster + 1] - self.cutoffs[cluster]
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **kind), Linear(hidden, size, bias=False, **kind))
            )

    def reset_parameters(self):
        self.head.reset_parameters()
        for to_hidden, to_classes in self.tail:
            to_hidden.reset_parameters()
            to_classes.reset_parameters()

    def forward(self, input_, target_):
        batched = target_.dim() > 0
        if target_.dim() == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)

        used = 0
        gather = target.new_empty(target.size(0))
        output = input.new_zeros(target.size(0))
        for index, (low, high) in enumerate(zip([0] + self.cutoffs, self.cutoffs)):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            if index == 0:
                gather.index_copy_(0, rows, target[inside])
            else:
                relative = target[inside] - low
                logprob = log_softmax(self.tail[index - 1](input.index_select(0, rows)), dim=1)
                # The head has one class for each cluster, behind those of its own.
                gather.index_fill_(0, rows, self.shortlist_size + index - 1)
                output.index_copy_(0, rows, logprob.gather(1, relative.unsqueeze(1)).squeeze(1))
            used += rows.numel()
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, gather.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for cluster, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            within = log_softmax(self.tail[cluster](input), dim=1)
            out[:, start:stop] = within + head[:, self.shortlist_size + cluster].unsqueeze(1)
        return out

    def log_prob(self, input):
        """Log probabilities of all classes: (N, in_features) → (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """Most probable class of each row: (N, in_features) → (N)."""
        head = self.head(input)
        output = head.argmax(dim=1)
        outside = output >= self.shortlist_size
        if not outside.any():
            return output
        if outside.all():
            return self._get_full_log_prob(input, head).argmax(dim=1)
        full = self._get_full_log_prob(input[outside], head[outside])
        output[outside] = full.argmax(dim=1)
        return output
