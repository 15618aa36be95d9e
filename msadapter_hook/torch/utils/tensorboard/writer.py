"""torch.utils.tensorboard.writer: event files."""

import os
import time
from datetime import datetime

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Appends events to a file of a folder. Source: PyTorch, torch.utils.tensorboard.FileWriter."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None):
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, message, global_step=None, walltime=None):
        self.add_event(event_pb2.Event(summary=message), global_step, walltime)

    def add_graph(self, graph, walltime=None):
        self.add_event(event_pb2.Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self):
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()

    def reopen(self):
        self.event_writer.reopen()


def graph_of(model, inputs):
    """The steps of a module as TensorBoard's GraphDef, by torch.fx, with the shapes that the inputs give."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    from ... import fx, no_grad

    traced = fx.symbolic_trace(model)
    with no_grad():
        fx.passes.shape_prop.ShapeProp(traced).propagate(*inputs)
    nodes = []
    for node in traced.graph.nodes:
        target = node.target if isinstance(node.target, str) else node._pretty_print_target(node.target)
        kind = {"placeholder": "IO Node", "output": "IO Node", "call_module": type(model).__name__}.get(node.op, target)
        if node.op == "call_module":
            kind = type(traced.get_submodule(node.target)).__name__
        made = NodeDef(name=node.name.replace(".", "/"), op=kind, input=[n.name for n in node.all_input_nodes])
        made.attr["attr"].CopyFrom(AttrValue(s=target.encode()))
        meta = node.meta.get("tensor_meta")
        if hasattr(meta, "shape"):
            shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in meta.shape])
            made.attr["_output_shapes"].CopyFrom(AttrValue(list=AttrValue.ListValue(shape=[shape])))
        nodes.append(made)
    return GraphDef(node=nodes, versions=VersionDef(producer=22))


class SummaryWriter:
    """Writes scalars, pictures, histograms and more for TensorBoard. Source: PyTorch, torch.utils.tensorboard.SummaryWriter.

    `log_dir`: the folder; without one `runs/` and the date, the host and `comment`. `purge_step`: what was written for this step
    and later is forgotten.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            import socket

            log_dir = os.path.join("runs", datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = log_dir
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = purge_step, max_queue, flush_secs, filename_suffix
        self.file_writer = self.all_writers = None
        self.default_bins = summary.default_bins()
        self._get_file_writer()

    def _open(self, folder):
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self):
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step = self.purge_step
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self):
        """The folder of the files."""
        return self.log_dir

    def _add(self, message, global_step=None, walltime=None):
        self._get_file_writer().add_summary(message, global_step, walltime)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number. Source: PyTorch, SummaryWriter.add_scalar."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one chart; each has a file of its own. Source: PyTorch, SummaryWriter.add_scalars."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            place = folder + "/" + main_tag.replace("/", "_") + "_" + tag
            if place not in self.all_writers:
                self.all_writers[place] = self._open(place)
            self.all_writers[place].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are spread. Source: PyTorch, SummaryWriter.add_histogram."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None,
                          walltime=None):
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture. Source: PyTorch, SummaryWriter.add_image."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW",
                             labels=None):
        labels = [labels] if isinstance(labels, str) else labels
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of Matplotlib, or several, as pictures. Source: PyTorch, SummaryWriter.add_figure."""
        import numpy as np
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        pictures = []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1))
            if close:
                pyplot.close(one)
        if isinstance(figure, (list, tuple)):
            self.add_image(tag, np.stack(pictures), global_step, walltime, dataformats="NCHW")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, dataformats="CHW")

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text. Source: PyTorch, SummaryWriter.add_text."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The steps of a module, by torch.fx: control flow that depends on data raises TraceError. Source: PyTorch,
        SummaryWriter.add_graph."""
        if input_to_model is None:
            raise ValueError("add_graph: give input_to_model, whose shapes the graph shows")
        inputs = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        graph = graph_of(model, inputs)
        if verbose:
            print(graph)
        self._get_file_writer().add_graph(graph)

    def add_onnx_graph(self, prototxt):
        from ..._refusal import refused

        refused("torch.utils.tensorboard.SummaryWriter.add_onnx_graph", "use add_graph with the module")()

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points for the projector. Source: PyTorch, SummaryWriter.add_embedding."""
        from google.protobuf import text_format
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

        points = summary.array(mat)
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        step = 0 if global_step is None else global_step
        folder = os.path.join(self._get_file_writer().get_logdir(), f"{step:05d}", tag.replace("/", "_"))
        info = summary.embedding(folder, f"{tag}:{step:05d}", points, metadata, label_img, metadata_header)
        self._projector = getattr(self, "_projector", None) or ProjectorConfig()
        self._projector.embeddings.append(info)
        with open(os.path.join(self._get_file_writer().get_logdir(), "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(text_format.MessageToString(self._projector))

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision over recall. Source: PyTorch, SummaryWriter.add_pr_curve."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts,
                         precision, recall, global_step=None, num_thresholds=127, weights=None, walltime=None):
        self._add(summary.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts,
                                       false_negative_counts, precision, recall, num_thresholds, weights), global_step, walltime)

    def add_custom_scalars(self, layout):
        """Which scalars are shown together. Source: PyTorch, SummaryWriter.add_custom_scalars."""
        self._add(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        self._add(summary.custom_scalars({category: {title: ["Multiline", tags]}}))

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        if len(tags) != 3:
            raise AssertionError("a margin chart takes 3 tags")
        self._add(summary.custom_scalars({category: {title: ["Margin", tags]}}))

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """A run's settings and their results, in a folder of their own. Source: PyTorch, SummaryWriter.add_hparams."""
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), str(run_name or time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer._add(message, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def flush(self):
        """Have everything on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Flush and close the files; writing again opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
