# LazyModuleMixin: a module whose parameters get their shapes from the first input.
from ... import no_grad
from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Mixin for modules with uninitialized parameters; the subclass defines `initialize_parameters(*args, **kwargs)`.

    After the first call the module becomes of class `cls_to_become` and loses its lazy hooks.
    Source: PyTorch, torch.nn.modules.lazy.LazyModuleMixin.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # An uninitialized tensor has no shape to detach with; it goes into the dictionary as it is.
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Take the shapes of uninitialized tensors from the dictionary that is about to be loaded."""
        for table in (self._parameters, self._buffers):
            for name, param in table.items():
                key = prefix + name
                if key in state_dict and param is not None and is_lazy(param) and not is_lazy(state_dict[key]):
                    with no_grad():
                        param.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args, **kwargs):
        """Give the parameters their shapes, from the arguments of forward."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(t) for table in (self._parameters, self._buffers) for t in table.values())

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
