"""torch.utils.tensorboard, read back by the tensorboard package."""

import numpy as np
import pytest

pytest.importorskip("tensorboard")

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter


def read(folder):
    made = EventAccumulator(str(folder), size_guidance={"tensors": 0, "histograms": 0})
    made.Reload()
    return made


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for i in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (i + 1)), i)
            writer.add_scalar("new", i * 0.5, i, new_style=True)
        writer.add_scalars("both", {"a": 1, "b": 2.0}, 1)
        with pytest.raises(AssertionError, match="one element"):
            writer.add_scalar("bad", torch.ones(2))
    found = read(tmp_path)
    assert [(s.step, round(s.value, 4)) for s in found.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    assert [t.tensor_proto.float_val[0] for t in found.Tensors("new")] == [0.0, 0.5, 1.0]
    assert read(tmp_path / "both_b").Scalars("both")[0].value == 2.0


def test_histogram_trims_empty_bins(tmp_path):
    # figures of PyTorch 2.13 for the same numbers
    torch.manual_seed(0)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("normal", torch.randn(1000), 0)
        writer.add_histogram("few", torch.arange(5.0), 0, bins="auto")
    found = read(tmp_path)
    few = found.Histograms("few")[0].histogram_value
    assert (few.bucket, few.bucket_limit) == ([0, 1, 1, 1, 2], [0, 1, 2, 3, 4])
    normal = found.Histograms("normal")[0].histogram_value
    assert (len(normal.bucket), normal.bucket[:4], sum(normal.bucket), normal.num) == (610, [0, 2, 2, 8], 1000, 1000)
    np.testing.assert_allclose(normal.bucket_limit[:2], [-3.1665833053880363, -2.8787120958073054])
    np.testing.assert_allclose([normal.min, normal.sum_squares], [-3.153724431991577, 1057.9924243648697], rtol=1e-6)


def test_pictures_sound_text_and_more(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("image", torch.rand(3, 8, 6))
        writer.add_images("images", torch.rand(10, 1, 8, 8))
        writer.add_text("text", "hello **x**")
        writer.add_audio("sound", torch.linspace(-1, 1, 100))
        writer.add_mesh("mesh", torch.rand(1, 4, 3))
        writer.add_custom_scalars({"c": {"x": ["Multiline", ["a", "b"]]}})
        writer.add_image_with_boxes("boxes", torch.rand(3, 16, 16), torch.tensor([[1, 1, 5, 5.0]]), labels="q")
        writer.add_video("film", torch.rand(1, 3, 3, 8, 8))
        writer.add_hparams({"lr": 0.1, "optimizer": "sgd", "flag": True}, {"accuracy": 0.9}, run_name="run")
        writer.add_embedding(torch.randn(4, 3), metadata=list("abcd"), label_img=torch.rand(4, 3, 8, 8))
    tags = read(tmp_path).Tags()
    assert set(tags["images"]) == {"image", "images", "boxes", "film"} and tags["audio"] == ["sound"]
    assert {"text/text_summary", "mesh_VERTEX", "custom_scalars__config__"} <= set(tags["tensors"])
    images = {tag: read(tmp_path).Images(tag)[0] for tag in ("image", "images")}
    assert (images["image"].height, images["image"].width) == (8, 6)
    assert (images["images"].height, images["images"].width) == (16, 64)  # rows of eight
    assert read(tmp_path / "run").Scalars("accuracy")[0].value == pytest.approx(0.9)
    assert (tmp_path / "00000" / "default" / "tensors.tsv").read_text().count("\n") == 4
    assert 'metadata_path: "00000/default/metadata.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_precision_and_recall(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("pr", torch.tensor([1, 0, 1, 0]), torch.tensor([0.9, 0.8, 0.3, 0.1]), num_thresholds=3)
    curve = np.array(read(tmp_path).Tensors("pr")[0].tensor_proto.float_val).reshape(6, 3)
    assert curve[:4].tolist() == [[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2]]


def test_graph_of_a_module(tmp_path):
    from torch.utils.tensorboard.writer import graph_of

    graph = graph_of(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), (torch.ones(1, 2),))
    assert [(n.name, n.op, list(n.input)) for n in graph.node] == [
        ("input_1", "IO Node", []), ("_0", "Linear", ["input_1"]), ("_1", "ReLU", ["_0"]), ("output", "IO Node", ["_1"])]
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(torch.nn.Linear(2, 3), torch.ones(1, 2))
    assert read(tmp_path).Tags()["graph"]
