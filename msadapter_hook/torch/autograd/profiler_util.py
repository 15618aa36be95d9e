"""torch.autograd.profiler_util: what a profile has recorded, summed and printed as PyTorch prints it."""

import json
from collections import defaultdict

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_COLUMN, _GAP = 12, 2


def _format_time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _format_share(part, whole):
    if whole == 0:
        return "NaN"
    return f"{part * 100.0 / whole:.2f}%"


class Interval:
    """From when to when, in microseconds since the profile began."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class _Times:
    """What events and sums of events have in common: `count`, `cpu_time_total`, `self_cpu_time_total` (microseconds)."""

    device_time = device_time_total = self_device_time_total = 0.0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self):
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self):
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self):
        return _format_time(self.self_cpu_time_total)

    device_time_str = device_time_total_str = self_device_time_total_str = "0.000us"


class FunctionEvent(_Times):
    """One call. Source: PyTorch, torch.autograd.profiler_util.FunctionEvent."""

    count = 1
    is_legacy = is_async = is_remote = False
    node_id = -1
    device_type = "CPU"

    def __init__(self, id, name, thread, start, input_shapes, is_user_annotation=False):
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start, start)
        self.input_shapes = input_shapes
        self.is_user_annotation = is_user_annotation
        self.cpu_children, self.cpu_parent = [], None
        self.path = None  # how the adapter ran it: primitive, composition, host
        self.kernels, self.stack = [], []

    @property
    def key(self):
        return self.name

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum([child.cpu_time_total for child in self.cpu_children])

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} device_type=DeviceType.CPU node_id=-1 cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
                f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} input_shapes={self.input_shapes}>")


class FunctionEventAvg(_Times):
    """The sum over calls of one name. Source: PyTorch, torch.autograd.profiler_util.FunctionEventAvg."""

    node_id, is_async, is_remote, device_type = 0, False, False, "CPU"

    def __init__(self):
        self.key, self.count = None, 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.input_shapes, self.cpu_children, self.cpu_parent, self.stack = None, None, None, None
        self.is_user_annotation = False
        self.path = None

    def add(self, event):
        """Take in an event, or another sum, of the same name."""
        if self.key is None:
            self.key, self.input_shapes, self.path = event.key, event.input_shapes, event.path
            self.cpu_parent, self.cpu_children = event.cpu_parent, event.cpu_children
            self.is_user_annotation = event.is_user_annotation
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.count += event.count
        return self

    def __iadd__(self, other):
        return self.add(other)

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
                f"self_cuda_time=0.000us cuda_time=0.000us input_shapes={self.input_shapes} cpu_memory_usage=0 "
                f"cuda_memory_usage=0>")


class EventList(list):
    """Events, or sums of them. Source: PyTorch, torch.autograd.profiler_util.EventList."""

    def __init__(self, events=(), shapes=False):
        super().__init__(events)
        self._shapes = shapes

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        return sum([event.self_cpu_time_total for event in self])

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """One FunctionEventAvg for each name (and input shapes). Source: PyTorch, EventList.key_averages."""
        sums = defaultdict(FunctionEventAvg)
        for event in self:
            sums[(event.key, str(event.input_shapes) if group_by_input_shape else "")].add(event)
        made = EventList(sums.values(), shapes=group_by_input_shape)
        if not group_by_input_shape:
            for one in made:
                one.input_shapes = ""
        return made

    def total_average(self):
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self):
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False, time_unit=None):
        """The events as a table. `sort_by`: an attribute such as "cpu_time_total", "self_cpu_time_total", "count". Source: PyTorch,
        EventList.table."""
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            name = sort_by.replace("cuda", "device")
            if not hasattr(events[0], name):
                raise AttributeError(f"'{type(events[0]).__name__}' object has no attribute '{sort_by}'")
            events.sort(key=lambda event: getattr(event, name), reverse=True)
        columns = [("Name", min(max(len(event.key) for event in self) + 4, max_name_column_width))]
        columns += [(name, _COLUMN) for name in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                                                 "# of Calls")]
        if self._shapes:
            columns.append(("Input Shapes", min(max(len(str(event.input_shapes)) for event in self) + 4, max_shapes_column_width)))
        pattern = "".join([f"{{: >{width}}}" + " " * _GAP for _, width in columns])
        rule = "".join(["-" * width + " " * _GAP for _, width in columns])
        whole = self.self_cpu_time_total
        lines = []
        if header is not None:
            lines += ["=" * len(rule), header]
        lines += [rule, pattern.format(*[name for name, _ in columns]), rule]
        shown = 0
        for event in events:
            if shown == row_limit:
                break
            if top_level_events_only and event.cpu_parent is not None:
                continue
            shown += 1
            name = event.key
            if len(name) >= max_name_column_width - 3:
                name = name[:max_name_column_width - 3] + "..."
            row = [name, _format_share(event.self_cpu_time_total, whole), event.self_cpu_time_total_str,
                   _format_share(event.cpu_time_total, whole), event.cpu_time_total_str, event.cpu_time_str, event.count]
            if self._shapes:
                row.append(str(event.input_shapes)[:max_shapes_column_width])
            lines.append(pattern.format(*row))
        lines += [rule, f"Self CPU time total: {_format_time(whole)}", ""]
        return "\n".join(lines)

    def export_chrome_trace(self, path):
        """Write the events in the format of Chrome's trace viewer. Source: PyTorch, EventList.export_chrome_trace."""
        events = [{"ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.name, "pid": 0,
                   "tid": event.thread, "ts": event.time_range.start, "dur": event.cpu_time_total,
                   "args": {"Input Dims": event.input_shapes or [], "path": event.path or ""}} for event in self]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events, "displayTimeUnit": "ms"}, file)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write "outer;inner time" lines for flame graphs: the calls of operators within each other. Source: PyTorch,
        EventList.export_stacks."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        sums = defaultdict(int)
        for event in self:
            names, at = [], event
            while at is not None:
                names.append(at.name.replace(" ", "_"))
                at = at.cpu_parent
            sums[";".join(reversed(names))] += int(getattr(event, metric))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines([f"{stack} {value}\n" for stack, value in sums.items() if value > 0])
