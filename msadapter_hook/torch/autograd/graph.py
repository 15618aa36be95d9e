"""torch.autograd.graph: nodes, edges, hooks on what a graph keeps."""

from msadapter_hook.autograd.graph import GradientEdge, Node, allow_mutation_on_saved_tensors, increment_version
from msadapter_hook.autograd.graph import gradient_edge_of as get_gradient_edge
from msadapter_hook.autograd.multi_hook import register_multi_grad_hook
from msadapter_hook.autograd.saved import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
           "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
