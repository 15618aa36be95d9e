# DistributedDataParallel: a module whose gradients are averaged over the processes of a group.
import contextlib
import copy
import dataclasses
import inspect
import itertools
import warnings

from msadapter_hook.errors import unsupported

from ... import Tensor, is_grad_enabled, no_grad
from ... import device as _device
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ..parameter import is_lazy
from ._buckets import broadcast_coalesced, verify_same_shapes
from ._reducer import Reducer
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DistributedDataParallel"]

_MIB = 1024 * 1024
_COALESCED = 250 * _MIB
_FIRST_BUCKET = _MIB


def _dist():
    # torch.distributed stands on torch.nn; it is asked for once both are there
    from ... import distributed

    return distributed


class DistributedDataParallel(Module):
    """Runs `module` on this process's share of a batch and averages the gradients over all processes during backward.

    At construction parameters and buffers become those of rank 0 of `process_group` (None: the default group). In backward
    gradients gather in buckets of `bucket_cap_mb` MiB (the first of 1 MiB), each all-reduced as soon as it is full and the ones
    before it have been started; `.grad` holds the average when backward ends. Buffers are broadcast from rank 0 before each
    synchronized forward (`forward_sync_buffers`). `find_unused_parameters`: walk the graph from the outputs each time, and do not
    wait for parameters that it does not reach. `static_graph`: the parameters used never change; all buckets are reduced at the
    end of backward, so reentrant and repeated checkpoints work. `gradient_as_bucket_view`: gradients lie in the memory of the
    buckets.

    RuntimeError for a module without trainable parameters or with lazy ones, for models that differ between the processes, and at the
    next forward where parameters got no gradient without `find_unused_parameters`. NotImplementedError for `mixed_precision`,
    `device_mesh`, delayed reductions and `join`. Source: PyTorch, torch.nn.parallel.DistributedDataParallel.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
        bucket_cap_mb_list=None,
        batched_grad_copy=False,
        forward_sync_buffers=None,
    ):
        super().__init__()
        _refuse(mixed_precision=mixed_precision, device_mesh=device_mesh,
                delay_all_reduce_named_params=delay_all_reduce_named_params, param_to_hook_all_reduce=param_to_hook_all_reduce)
        self.process_group = process_group if process_group is not None else _dist().distributed_c10d._get_default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = self._trainable(module)
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {p.device for p in module.parameters() if not is_lazy(p)}
        self.device_type = next(iter(devices)).type if devices else "cpu"
        self.is_multi_device_module = len(devices) > 1
        if (device_ids or output_device is not None) and (self.is_multi_device_module or self.device_type == "cpu"):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
                f"modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                f"{devices}.")
        if any(is_lazy(p) for p in module.parameters()):
            raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward "
                               "pass to correctly initialize the modules")
        self.device_ids = [_device(self.device_type, d) if isinstance(d, int) else _device(d) for d in device_ids] if device_ids else None
        self.output_device = output_device if output_device is not None else self.device_ids[0] if self.device_ids else None
        self.device = next(iter(devices))
        self.dim = dim
        self.module = module
        self.static_graph = static_graph
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.batched_grad_copy = batched_grad_copy
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.mixed_precision = None
        self.forward_sync_buffers = self._wants_buffers(broadcast_buffers, forward_sync_buffers)
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.broadcast_bucket_size = _COALESCED
        self.bucket_bytes_cap_default = bucket_cap_mb is None
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self.bucket_bytes_cap_list = [int(size * _MIB) for size in bucket_cap_mb_list or ()]
        self._buffer_hook = None
        self._comm_hooks = []
        if init_sync:
            verify_same_shapes(self.process_group, [p for _, p in named])
            with_buffers = broadcast_buffers is not False or forward_sync_buffers is not None
            self._make_equal([p for n, p in module.named_parameters() if n not in self.parameters_to_ignore]
                             + (self._buffers_of(module) if with_buffers else []))
        self._build(named)

    @staticmethod
    def _wants_buffers(old, new):
        if old is not None:
            if new is not None:
                warnings.warn("Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated "
                              "and its value is ignored when `forward_sync_buffers` is provided.", FutureWarning, stacklevel=3)
            else:
                warnings.warn("`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead: it leaves the buffers alone in "
                              "forward only, while `broadcast_buffers=False` leaves them alone at construction too.",
                              FutureWarning, stacklevel=3)
        return new if new is not None else old if old is not None else True

    @property
    def broadcast_buffers(self):
        """Whether buffers are broadcast before forward; the older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    def _trainable(self, module):
        return [(name, p) for name, p in module.named_parameters() if p.requires_grad and name not in self.parameters_to_ignore]

    def _buffers_of(self, module):
        return [b for name, b in module.named_buffers() if name not in self.parameters_to_ignore]

    def _build(self, named):
        # what cannot be pickled: made again in a process that unpickles the module
        self._buffers_to_sync = self._buffers_of(self.module)
        limits = self.bucket_bytes_cap_list or [self.bucket_bytes_cap]
        if self.bucket_bytes_cap_default and not self.bucket_bytes_cap_list:
            limits = [_FIRST_BUCKET, self.bucket_bytes_cap]
        self.reducer = Reducer([p for _, p in named], [n for n, _ in named], self.process_group, limits,
                               find_unused=self.find_unused_parameters, shared=self.gradient_as_bucket_view,
                               static_graph=self.static_graph, skip_unused=self.skip_all_reduce_unused_params,
                               sparse=_sparse_places(self.module, named))

    def _make_equal(self, tensors, source=0):
        if tensors:
            broadcast_coalesced(self.process_group, tensors, self.broadcast_bucket_size, source)

    def __getstate__(self):
        if self.process_group is not _dist().distributed_c10d._get_default_group():
            raise RuntimeError("DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when "
                               "you have called init_process_group and have not passed process_group argument to DDP constructor")
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer", "_buffers_to_sync"):
            del state[name]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.process_group = _dist().distributed_c10d._get_default_group()
        self.__dict__.setdefault("require_forward_param_sync", True)
        self.__dict__.setdefault("require_backward_grad_sync", True)
        self._build(self._trainable(self.module))
        for state, hook in self._comm_hooks:
            self._install_hook(state, hook)

    # -------------------------------------------------------------------------------------------- forward
    @contextlib.contextmanager
    def no_sync(self):
        """Within: forwards whose backward only adds up gradients locally. The first backward of a forward outside averages the sum."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def will_sync_module_buffers(self):
        """Whether the next forward broadcasts buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._buffers_to_sync)

    def forward(self, *inputs, **kwargs):
        synchronized = is_grad_enabled() and self.require_backward_grad_sync
        if synchronized:
            self.reducer.ensure_finished()
        hook = self._buffer_hook
        if hook is None or hook[2] == "pre":
            self._sync_buffers()
        if self.device_ids:
            inputs, kwargs = (moved[0] for moved in scatter_kwargs(inputs, kwargs, self.device_ids, self.dim))
        output = self.module(*inputs, **kwargs)
        if hook is not None and hook[2] == "post":
            self._sync_buffers()
        if synchronized:
            self.require_forward_param_sync = True
            self.reducer.prepare_for_backward(list(_find_tensors(output)) if self.find_unused_parameters and not self.static_graph else ())
        else:
            self.require_forward_param_sync = False
        return output

    def _sync_buffers(self):
        if not self.will_sync_module_buffers():
            return
        with no_grad():
            if self._buffer_hook is None:
                self._make_equal(self._buffers_to_sync)
                return
            state, hook, _ = self._buffer_hook
            named = {n: b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore}
            futures = hook(state, named)
            for future in futures or ():
                future.wait()

    def scatter(self, inputs, kwargs, device_ids):
        """Inputs and keyword arguments moved to the devices."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def to_kwargs(self, inputs, kwargs, device_id):
        """Inputs and keyword arguments moved to one device, as PyTorch's helper gives them."""
        return scatter_kwargs(inputs, kwargs, [device_id], dim=self.dim)

    def gather(self, outputs, output_device):
        """Outputs of several devices joined."""
        return gather(outputs, output_device, dim=self.dim)

    # -------------------------------------------------------------------------------------------- options after construction
    def register_comm_hook(self, state, hook):
        """Reduce each bucket by `hook(state, bucket: GradBucket) -> Future[Tensor]` instead of the average.

        What the future gives becomes the gradients as it is. TypeError, ValueError, RuntimeError for a hook that cannot be one, and
        for a second one.
        """
        _check_hook(hook)
        self._install_hook(state, hook)
        self._comm_hooks.append((state, hook))

    def _install_hook(self, state, hook):
        self.reducer.set_hook(lambda bucket: hook(state, bucket))

    def _register_builtin_comm_hook(self, comm_hook_type):
        """Reduce by one of the hooks that `torch.distributed.BuiltinCommHookType` names."""
        from ...distributed.algorithms.ddp_comm_hooks import default_hooks

        chosen = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}
        self.register_comm_hook(self.process_group, chosen[comm_hook_type.name])

    def _register_buffer_comm_hook(self, state, hook, comm_hook_location=None):
        """Bring buffers into line by `hook(state, {name: buffer})` instead of the broadcast, before or (by default) after forward."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        place = getattr(comm_hook_location, "name", comm_hook_location)
        self._buffer_hook = (state, hook, "pre" if place == "PRE_FORWARD" else "post")

    def _set_static_graph(self):
        """As `static_graph=True` at construction."""
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.static_graph = self.reducer.static_graph = True
        if self.find_unused_parameters:
            warnings.warn("You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused "
                          "parameters automatically, so you do not need to set find_unused_parameters=true, just be sure these unused "
                          "parameters will not change during training loop while calling `_set_static_graph`.", stacklevel=2)

    def _update_process_group(self, new_process_group):
        """Reduce over another group from now on."""
        self.process_group = self.reducer.group = new_process_group

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        """Names of parameters and buffers of `module` that a DistributedDataParallel made later leaves alone."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, t in itertools.chain(module.named_parameters(), module.named_buffers()):
            if name in params_and_buffers_to_ignore:
                t._ddp_ignored = True

    def _get_ddp_logging_data(self):
        """What is known of this module's reduction, by PyTorch's names; no timings."""
        reducer = self.reducer
        return {
            "world_size": _dist().get_world_size(self.process_group),
            "rank": _dist().get_rank(self.process_group),
            "module_name": type(self.module).__name__,
            "backend_name": _dist().get_backend(self.process_group),
            "broadcast_buffers": int(self.forward_sync_buffers),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "bucket_sizes": ", ".join(str(sum(b.sizes) * b.params[0].element_size()) for b in reducer.buckets),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "can_set_static_graph": len(reducer.unused_history) <= 1,
            "iteration": reducer.iterations,
            "num_parameter_tensors": len(reducer.params),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in reducer.params),
            "has_rebuilt_buckets": 0,
            "has_sync_bn": int(any(type(m).__name__ == "SyncBatchNorm" for m in self.module.modules())),
            "is_multi_device_module": int(self.is_multi_device_module),
        }

    def _register_fused_optim(self, optim, *args, optim_params=None, **kwargs):
        raise unsupported("torch.nn.parallel.DistributedDataParallel._register_fused_optim", "call optimizer.step() after backward()")

    # -------------------------------------------------------------------------------------------- uneven inputs
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Refused where enabled: NotImplementedError. With enable=False a context that does nothing."""
        if not enable:
            return contextlib.nullcontext()
        raise _no_join("join")

    def join_hook(self, **kwargs):
        raise _no_join("join_hook")

    @property
    def join_device(self):
        raise _no_join("join_device")

    @property
    def join_process_group(self):
        raise _no_join("join_process_group")


def _no_join(name):
    return unsupported(
        f"torch.nn.parallel.DistributedDataParallel.{name}",
        "give every process the same number of batches (torch.utils.data.distributed.DistributedSampler does, drop_last=True without "
        "repeated samples)")


_ADVICE = {
    "mixed_precision": "use torch.autocast around the forward instead",
    "device_mesh": "give process_group=torch.distributed.new_group(ranks) instead",
    "delay_all_reduce_named_params": "leave it out: buckets are reduced as they become ready",
    "param_to_hook_all_reduce": "leave it out: buckets are reduced as they become ready",
}


def _refuse(**arguments):
    for name, given in arguments.items():
        if given is not None:
            raise unsupported(f"torch.nn.parallel.DistributedDataParallel({name}=…)", _ADVICE[name])


def _sparse_places(module, named):
    """The places of parameters that are looked up with sparse gradients."""
    looked_up = {id(m.weight) for m in module.modules() if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse}
    return [place for place, (_, p) in enumerate(named) if id(p) in looked_up]


def _check_hook(hook):
    """Errors in PyTorch's words for what cannot be a communication hook."""
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    dist = _dist()
    bucket = signature.parameters.get("bucket")
    if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, dist.GradBucket, "dist.GradBucket", "GradBucket"):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    from ...futures import Future

    given = signature.return_annotation
    if given is not inspect.Signature.empty and given is not Future and "Future" not in str(given):
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


def _find_tensors(obj):
    """The tensors in a result: itself, or in lists, tuples, dictionaries and dataclasses."""
    if isinstance(obj, Tensor):
        yield obj
    elif isinstance(obj, (list, tuple)):
        for item in obj:
            yield from _find_tensors(item)
    elif isinstance(obj, dict):
        for item in obj.values():
            yield from _find_tensors(item)
    elif dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        for field in dataclasses.fields(obj):
            yield from _find_tensors(getattr(obj, field.name))
