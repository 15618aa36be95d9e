"""torch.utils.tensorboard.summary: values as the messages that TensorBoard reads."""

import io
import json
import os
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # numbers of types in TensorProto


def array(x):
    """A NumPy array of a tensor, number, list or array. NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    if isinstance(x, (list, tuple)):
        return np.array([array(one).squeeze() if hasattr(one, "detach") else one for one in x])
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _value(tag, **fields):
    return Summary(value=[Summary.Value(tag=tag, **fields)])


def _plugin(name, content=b"", **fields):
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=content), **fields)


def _shape(*sizes):
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def scalar(tag, value, new_style=False, double_precision=False):
    """One number."""
    data = array(value).squeeze()
    if data.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {data.size} and {data.ndim} "
                             f"dimensions.")
    number = float(data)
    if not new_style:
        return _value(tag, simple_value=number)
    tensor = TensorProto(double_val=[number], dtype=_DOUBLE) if double_precision else TensorProto(float_val=[number], dtype=_FLOAT)
    return _value(tag, tensor=tensor, metadata=_plugin("scalars"))


def tensor_proto(tag, tensor):
    """A tensor as it is."""
    data = array(tensor)
    known = {"float64": 2, "float32": 1, "int64": 9, "int32": 3, "uint8": 4, "bool": 10, "float16": 19, "int16": 5, "int8": 6}
    if data.dtype.name not in known:
        raise ValueError(f"tensor of dtype {data.dtype} cannot be written")
    proto = TensorProto(dtype=known[data.dtype.name], tensor_shape=_shape(*data.shape), tensor_content=data.tobytes())
    return _value(tag, tensor=proto, metadata=_plugin("tensor"))


def default_bins():
    """Bins that grow by a tenth from 1e-12 to 1e20, on both sides of zero: TensorBoard's own."""
    edge, edges = 1e-12, []
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0] + edges


def histogram(tag, values, bins, max_bins=None):
    """Numbers as counts in bins."""
    values = array(values).astype(float).reshape(-1)
    if not values.size:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        together = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), together))
        edges = np.append(edges[:-1:together], edges[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    # an empty bin stays before the first filled one: it says where that begins
    first, last = filled[0], filled[-1]
    counts = np.concatenate([[0], counts[first:last + 1]])
    return _value(tag, histo=HistogramProto(min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
                                            sum_squares=values.dot(values), bucket_limit=edges[first:last + 2].tolist(),
                                            bucket=counts.tolist()))


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """Counts that the program has made itself."""
    return _value(tag, histo=HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
                                            bucket=bucket_counts))


def _grid(images, columns=8):
    """N images (N, channels, height, width) in rows of `columns`."""
    n, c, h, w = images.shape
    columns = min(n, columns)
    canvas = np.zeros((c, h * -(-n // columns), w * columns), images.dtype)
    for i in range(n):
        y, x = divmod(i, columns)
        canvas[:, y * h:(y + 1) * h, x * w:(x + 1) * w] = images[i]
    return canvas


def to_hwc(data, order):
    """An image with axes named by `order` (letters of NCHW) as height, width, 3 channels."""
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {order}")
    if data.ndim != len(order):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {data.shape}, input_format: "
                             f"{order}")
    order = order.upper()
    if len(order) == 4:
        data = _grid(data.transpose([order.find(axis) for axis in "NCHW"])).transpose(1, 2, 0)
    elif len(order) == 3:
        data = data.transpose([order.find(axis) for axis in "HWC"])
    else:
        data = data.transpose([order.find(axis) for axis in "HW"])[..., None]
    return np.concatenate([data] * 3, 2) if data.shape[2] == 1 else data


def _png(data, rescale=1):
    from PIL import Image

    height, width, channels = data.shape
    picture = Image.fromarray(data)
    if rescale != 1:
        picture = picture.resize((int(width * rescale), int(height * rescale)))
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return Summary.Image(height=picture.height, width=picture.width, colorspace=channels, encoded_image_string=file.getvalue())


def _bytes(data):
    """Values 0 to 1 (floating) or 0 to 255 (integers) as bytes."""
    return np.clip(data * (1 if data.dtype == np.uint8 else 255), 0, 255).astype(np.uint8)


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """A picture, or several in one."""
    data = array(tensor)
    return _value(tag,
                  image=_png(_bytes(to_hwc(data if data.dtype == np.uint8 else data.astype(np.float32), dataformats)), rescale))


def image_boxes(tag, image_tensor, boxes, rescale=1, dataformats="CHW", labels=None):
    """A picture with boxes (x1, y1, x2, y2) on it."""
    from PIL import Image, ImageDraw

    data = _bytes(to_hwc(array(image_tensor).astype(np.float32), dataformats))
    picture = Image.fromarray(data)
    draw = ImageDraw.Draw(picture)
    for i, (left, top, right, bottom) in enumerate(array(boxes).reshape(-1, 4)):
        draw.rectangle([(left, top), (right, bottom)], outline="Red", width=2)
        if labels is not None:
            draw.text((left, max(0, bottom - 12)), str(labels[i]), fill="Black")
    return _value(tag, image=_png(np.array(picture), rescale))


def video(tag, tensor, fps=4):
    """Frames (batch, time, channels, height, width) as an animated GIF."""
    from PIL import Image

    data = array(tensor)
    data = data if data.dtype == np.uint8 else _bytes(data.astype(np.float32))
    frames = [np.moveaxis(_grid(data[:, t]), 0, -1) for t in range(data.shape[1])]
    pictures = [Image.fromarray(f[..., 0] if f.shape[2] == 1 else f) for f in frames]
    file = io.BytesIO()
    pictures[0].save(file, format="GIF", save_all=True, append_images=pictures[1:], duration=int(1000 / fps), loop=0)
    height, width, channels = frames[0].shape
    return _value(tag, image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()))


def audio(tag, tensor, sample_rate=44100):
    """Sound: numbers from -1 to 1, as 16-bit WAV."""
    data = array(tensor)
    if abs(data).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        data = data.clip(-1, 1)
    if data.ndim != 1 and data.squeeze().ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (data.squeeze() * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(samples.tobytes())
    return _value(tag, audio=Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=samples.shape[-1],
                                           encoded_audio_string=file.getvalue(), content_type="audio/wav"))


def text(tag, words):
    """A text, shown as Markdown."""
    return _value(tag + "/text_summary", metadata=_plugin("text", content=b""), tensor=TensorProto(
        dtype=_STRING, string_val=[words.encode("utf-8")], tensor_shape=_shape(1)))


def _curve(tag, data, num_thresholds):
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    return _value(tag, metadata=_plugin("pr_curves", content), tensor=TensorProto(
        dtype=_FLOAT, float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape)))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall for thresholds from 0 to 1."""
    num_thresholds = min(num_thresholds, 127)  # more make the page slow
    labels, predictions = array(labels).reshape(-1), array(predictions).reshape(-1)
    weights = np.ones_like(predictions, float) if weights is None else array(weights).reshape(-1)
    place = np.floor(predictions.astype(float) * (num_thresholds - 1)).astype(int)
    hit = labels.astype(float)
    ranges = {"bins": num_thresholds, "range": (0, num_thresholds - 1)}
    true_above = np.histogram(place, weights=hit * weights, **ranges)[0][::-1].cumsum()[::-1]
    false_above = np.histogram(place, weights=(1 - hit) * weights, **ranges)[0][::-1].cumsum()[::-1]
    true_below, false_below = false_above[0] - false_above, true_above[0] - true_above
    tiny = 1e-7
    precision = true_above / np.maximum(tiny, true_above + false_above)
    recall = true_above / np.maximum(tiny, true_above + false_below)
    return _curve(tag, np.stack([true_above, false_above, true_below, false_below, precision, recall]), num_thresholds)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None):
    """Precision and recall that the program has made itself."""
    num_thresholds = min(num_thresholds, 127)
    return _curve(tag, np.stack([array(x) for x in (tp, fp, tn, fn, precision, recall)]), num_thresholds)


def custom_scalars(layout):
    """Which scalars are shown together: {category: {chart: ["Multiline" or "Margin", [tags]]}}."""
    categories = []
    for name, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("a margin chart takes 3 tags")
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                made.append(layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=list(tags))))
        categories.append(layout_pb2.Category(title=name, chart=made))
    whole = layout_pb2.Layout(category=categories)
    return _value("custom_scalars__config__", metadata=_plugin("custom_scalars"), tensor=TensorProto(
        dtype=_STRING, string_val=[whole.SerializeToString()], tensor_shape=TensorShapeProto()))


def mesh(tag, vertices, colors, faces, config_dict, display_name=None, description=None):
    """A three-dimensional figure: vertices (batch, n, 3), colors (batch, n, 3), faces (batch, m, 3)."""
    parts = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    parts = [(array(x), kind) for x, kind in parts if x is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    config = json.dumps(config_dict or {}, sort_keys=True)
    values = []
    for data, kind in parts:
        meta = mesh_metadata.create_summary_metadata(tag, display_name, kind, components, data.shape, description,
                                                     json_config=config)
        proto = TensorProto(dtype=_FLOAT, float_val=data.reshape(-1).astype(float).tolist(), tensor_shape=_shape(*data.shape))
        values.append(Summary.Value(tag=mesh_metadata.get_instance_name(tag, kind), tensor=proto, metadata=meta))
    return Summary(value=values)


def hparams(hparam_dict, metric_dict, domains=None):
    """(experiment, start, end): the three messages in which a run's settings and their results are told."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionaries.")
    kinds = {str: "DATA_TYPE_STRING", bool: "DATA_TYPE_BOOL", int: "DATA_TYPE_FLOAT64", float: "DATA_TYPE_FLOAT64"}
    infos, start = [], plugin_data_pb2.SessionStartInfo()
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if hasattr(value, "detach") or isinstance(value, np.generic):
            value = array(value).reshape(-1)[0].item()
        if type(value) not in kinds:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        field = {str: "string_value", bool: "bool_value"}.get(type(value), "number_value")
        setattr(start.hparams[name], field, value)
        domain = None
        if domains and name in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: v}) for v in domains[name]])
        infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kinds[type(value)]), domain_discrete=domain))
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict]

    def message(tag, **content):
        data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
        return _value(tag, metadata=_plugin(metadata.PLUGIN_NAME, data.SerializeToString()))

    return (message(metadata.EXPERIMENT_TAG, experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)),
            message(metadata.SESSION_START_INFO_TAG, session_start_info=start),
            message(metadata.SESSION_END_INFO_TAG, session_end_info=plugin_data_pb2.SessionEndInfo(
                status=api_pb2.Status.Value("STATUS_SUCCESS"))))


def embedding(folder, name, mat, metadata, label_img, metadata_header):
    """Write points and their labels and pictures into `folder`; gives their entry for the projector's list."""
    from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

    os.makedirs(folder, exist_ok=True)
    sub = os.path.join(*folder.split(os.sep)[-2:])
    info = EmbeddingInfo(tensor_name=name, tensor_path=os.path.join(sub, "tensors.tsv"))
    with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf-8") as file:
        file.writelines(["\t".join([str(x) for x in row]) + "\n" for row in mat])
    if metadata is not None:
        if len(metadata) != len(mat):
            raise AssertionError("#labels should equal with #data points")
        rows = [[str(x) for x in (row if metadata_header else [row])] for row in metadata]
        with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as file:
            file.writelines(["\t".join(row) + "\n" for row in ([list(metadata_header)] if metadata_header else []) + rows])
        info.metadata_path = os.path.join(sub, "metadata.tsv")
    if label_img is not None:
        from PIL import Image

        pictures = array(label_img)
        if len(pictures) != len(mat):
            raise AssertionError("#images should equal with #data points")
        side = int(np.ceil(np.sqrt(len(pictures))))
        padded = np.concatenate([pictures, np.zeros((side * side - len(pictures), *pictures.shape[1:]), pictures.dtype)])
        sprite = _bytes(np.moveaxis(_grid(padded.astype(np.float32), side), 0, -1))
        sprite = np.repeat(sprite, 3, axis=2) if sprite.shape[2] == 1 else sprite
        Image.fromarray(sprite).save(os.path.join(folder, "sprite.png"))
        info.sprite.image_path = os.path.join(sub, "sprite.png")
        info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    return info
