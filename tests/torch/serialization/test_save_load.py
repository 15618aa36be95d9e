# Checkpoints: files of PyTorch read, ours in the same format, shared storage kept, broken and hostile files refused.
import collections
import copy
import io
import json
import os
import pathlib
import pickle
import pickletools
import zipfile

import numpy as np
import pytest
import torch

FOLDER = pathlib.Path(__file__).parents[2] / "goldens" / "checkpoints"


def roundtrip(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("suffix", ["", "_legacy"])
class TestFilesOfPyTorch:
    def test_all_dtypes(self, suffix):
        for name, tensor in torch.load(FOLDER / f"dtypes{suffix}.pt").items():
            assert tensor.dtype == getattr(torch, name)
            numbers = tensor.to(torch.float32).tolist()
            assert numbers == ([0, 1, 1, 1] if name == "bool" else [0, 1, 2, 3]), name

    def test_views_share_their_storage(self, suffix):
        loaded = torch.load(FOLDER / f"views{suffix}.pt")
        assert loaded["t"].shape == (4, 3) and loaded["t"].stride() == (1, 4)
        assert loaded["step"].tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
        assert loaded["empty"].shape == (0, 2)
        loaded["base"][1, 0] = 100.0
        assert loaded["row"][0].item() == 100.0
        assert loaded["t"][0, 1].item() == 100.0
        assert loaded["step"][1, 0].item() == 100.0

    def test_state_dicts(self, suffix):
        loaded = torch.load(FOLDER / f"training{suffix}.pt")
        want = json.loads((FOLDER / "summary.json").read_text())["training"]
        assert isinstance(loaded["model"], collections.OrderedDict)
        assert {key: value.tolist() for key, value in loaded["model"].items()} == want
        assert loaded["epoch"] == 3 and loaded["name"] == "net"
        assert loaded["optimizer"]["state"][0]["step"].item() == 1.0
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        model.load_state_dict(loaded["model"])
        torch.optim.Adam(model.parameters()).load_state_dict(loaded["optimizer"])

    def test_parameters_and_requires_grad(self, suffix):
        parameter, tensor, number = torch.load(FOLDER / f"parameter{suffix}.pt")
        assert isinstance(parameter, torch.nn.Parameter) and parameter.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert tensor.requires_grad and tensor.is_leaf
        assert number.item() == 5 and number.dtype == torch.int64

    def test_plain_values(self, suffix):
        loaded = torch.load(FOLDER / f"plain{suffix}.pt")
        assert loaded["t"] == (1, 2.5, "a", None, True, b"bytes", 1 << 70, 3j)
        assert loaded["c"] == collections.Counter("aab") and loaded["s"] == {1, 2}
        assert loaded["size"] == torch.Size([2, 3]) and loaded["dtype"] == torch.bfloat16
        assert loaded["device"] == torch.device("cpu") and loaded["b"] == bytearray(b"xyz")


def test_our_pickle_is_opcode_for_opcode_pytorchs():
    base = torch.arange(12.0).reshape(3, 4)
    file = io.BytesIO()
    torch.save({"base": base, "row": base[1], "t": base.t(), "step": base[:, ::2], "empty": torch.empty(0, 2)}, file)

    def program(data):
        with zipfile.ZipFile(data) as archive:
            name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
            return [(op.name, arg) for op, arg, _ in pickletools.genops(archive.read(name))]

    assert program(file) == program(FOLDER / "views.pt")


def test_records_are_named_and_aligned_as_pytorchs(tmp_path):
    path = tmp_path / "net.pt"
    torch.save({"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int8)}, path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        assert archive.read("net/version") == b"3\n" and archive.read("net/byteorder") == b"little"
        info = archive.getinfo("net/data/1")
    assert names[:6] == ["net/data.pkl", "net/.format_version", "net/.storage_alignment", "net/byteorder", "net/data/0",
                         "net/data/1"]  # fmt: skip
    raw = path.read_bytes()
    name_size, extra_size = raw[info.header_offset + 26], int.from_bytes(raw[info.header_offset + 28 :][:2], "little")
    assert (info.header_offset + 30 + name_size + extra_size) % 64 == 0


@pytest.mark.parametrize("zipped", [True, False])
def test_roundtrip_keeps_sharing_dtypes_and_structure(zipped):
    base = torch.arange(6.0)
    obj = {
        "base": base,
        "view": base[2:4],
        "bf16": torch.tensor([1.5, 2.0], dtype=torch.bfloat16),
        "bool": torch.tensor([True, False]),
        "complex": torch.tensor([1 + 2j]),
        "zero": torch.zeros(3, 0),
        "scalar": torch.tensor(3.25),
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
    }
    loaded = roundtrip(obj, _use_new_zipfile_serialization=zipped)
    for name, tensor in obj.items():
        assert type(loaded[name]) is type(tensor) and loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape and loaded[name].tolist() == tensor.tolist()
    assert not loaded["parameter"].requires_grad
    loaded["base"][2] = -1.0
    assert loaded["view"][0].item() == -1.0


def test_whole_modules_with_weights_only_false():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    with pytest.raises(
        pickle.UnpicklingError, match="Unsupported global: GLOBAL torch.nn.modules.container.Sequential"
    ):
        torch.load(file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    x = torch.ones(1, 2)
    assert torch.equal(loaded(x), model(x))


class Thing:
    def __init__(self, value):
        self.value = value


def test_safe_globals():
    file = io.BytesIO()
    torch.save(Thing(torch.ones(2)), file)
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(io.BytesIO(file.getvalue()))
    name = f"{Thing.__module__}.Thing"
    assert torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue())) == [name]
    with torch.serialization.safe_globals([Thing]):
        assert torch.load(io.BytesIO(file.getvalue())).value.tolist() == [1.0, 1.0]
    assert Thing not in torch.serialization.get_safe_globals()


def test_map_location():
    file = io.BytesIO()
    torch.save(torch.ones(2), file)

    def load(location):
        return torch.load(io.BytesIO(file.getvalue()), map_location=location)

    seen = []
    for location in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda s, tag: seen.append((s.nbytes(), tag)) or s):
        assert load(location).tolist() == [1.0, 1.0]
    assert seen == [(8, "cpu")]
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load("nowhere")


def test_mmap(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(4.0)}, path)
    before = path.read_bytes()
    loaded = torch.load(path, mmap=True)
    loaded["x"][0] = 9.0
    assert loaded["x"].tolist() == [9.0, 1.0, 2.0, 3.0] and path.read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path"):
        torch.load(io.BytesIO(before), mmap=True)


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_in_a_file_is_executed(tmp_path, zipped):
    mark = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(mark),))

    file = io.BytesIO()
    torch.save({"x": torch.ones(2), "evil": Evil()}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="whose module (posix|nt) is blocked"):
        torch.load(file)
    assert not mark.exists()


def _changed(change):
    file, out = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.arange(4.0), "b": torch.ones(3)}, file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = change(name, source.read(name))
            if data is not None:
                target.writestr(name, data)
    out.seek(0)
    return out


@pytest.mark.parametrize(
    "part, change, message",
    [
        ("data/0", lambda d: d[:-4], "does not match expected size"),
        ("data/0", lambda d: None, "failed locating file data/0"),
        ("data.pkl", lambda d: None, "failed locating file data.pkl"),
        ("/version", lambda d: None, "version"),
        ("/version", lambda d: b"99\n", "maximum supported version"),
        ("byteorder", lambda d: b"odd", "Unknown endianness type"),
        ("data.pkl", lambda d: d[:40], "not well formed"),
        ("data.pkl", lambda d: d.replace(b"K\x04", b"K\xf0"), "does not match expected size"),
        ("data.pkl", lambda d: d.replace(b"FloatStorage", b"FloatStorag_"), "Unsupported global"),
        ("data.pkl", lambda d: d.replace(b"storage", b"st_rage"), "Only persistent_load of storage is allowed"),
    ],
)
def test_broken_parts(part, change, message):
    file = _changed(lambda name, data: change(data) if name.endswith(part) else data)
    with pytest.raises((RuntimeError, ValueError, pickle.UnpicklingError), match=message):
        torch.load(file)


@pytest.mark.parametrize("zipped", [True, False])
def test_every_truncation_is_an_error(zipped):
    file = io.BytesIO()
    torch.save({"a": torch.arange(40.0)}, file, _use_new_zipfile_serialization=zipped)
    whole = file.getvalue()
    for end in [0, 1, 3, *range(4, len(whole) - 1, 37), len(whole) - 1]:
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(whole[:end]))


def test_flipped_bits_in_data_are_noticed():
    file = io.BytesIO()
    torch.save(torch.arange(100.0), file)
    raw = bytearray(file.getvalue())
    raw[raw.find(np.arange(100, dtype=np.float32).tobytes()) + 13] ^= 4
    with pytest.raises(RuntimeError, match="corrupted"):
        torch.load(io.BytesIO(bytes(raw)))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("zipped", [True, False])
def test_random_damage_is_an_error_or_harmless(zipped):
    file = io.BytesIO()
    torch.save({"a": torch.arange(20.0), "p": torch.nn.Parameter(torch.ones(2, 2)), "l": [1, (2.5, b"x")]}, file,
               _use_new_zipfile_serialization=zipped)  # fmt: skip
    whole, random = file.getvalue(), np.random.RandomState(0)
    for _ in range(300):
        raw = bytearray(whole)
        for _ in range(random.choice([1, 2, 8])):
            raw[random.randint(min(len(raw), 700))] = random.randint(256)
        try:
            torch.load(io.BytesIO(bytes(raw)))
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            pass


def test_a_swollen_record_is_refused():
    file = _changed(lambda name, data: data)
    out = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, bytes(1 << 24) if name.endswith("data.pkl") else source.read(name))
    out.seek(0)
    with pytest.raises(RuntimeError, match="refusing to unpack"):
        torch.load(out)


def test_unsuitable_arguments():
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        torch.load(3)
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, "/no/such/folder/x.pt")
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(b"x"), weights_only=True, pickle_module=pickle)


def test_pickle_and_deepcopy_of_tensors():
    x = torch.arange(4.0, requires_grad=True)
    again = pickle.loads(pickle.dumps(x))
    assert again.tolist() == x.tolist() and again.requires_grad
    base = torch.arange(4.0)
    first, second = copy.deepcopy([base, base[1:]])
    first[1] = 9.0
    assert second[0].item() == 9.0 and base[1].item() == 1.0
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_typed_storage():
    storage = torch.FloatStorage([1.0, 2.0])
    assert isinstance(storage, torch.FloatStorage) and not isinstance(storage, torch.LongStorage)
    assert storage.tolist() == [1.0, 2.0] and len(storage) == 2 and storage.type() == "torch.FloatStorage"
    x = torch.arange(3.0)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        shared = x.storage()
    shared[0] = 7.0
    assert x[0].item() == 7.0
    assert x.untyped_storage().nbytes() == 12


def test_parameters_keep_their_attributes():
    p = torch.nn.Parameter(torch.ones(2))
    p.role = "bias"
    buffer = io.BytesIO()
    torch.save(p, buffer)
    buffer.seek(0)
    found = torch.load(buffer)
    assert type(found) is torch.nn.Parameter and found.role == "bias"


def test_files_need_no_more_than_write_and_read_seek_tell():
    class Few:
        def __init__(self, inner, *names):
            for name in names:
                setattr(self, name, getattr(inner, name))

    inner = io.BytesIO()
    torch.save({"a": torch.arange(3)}, Few(inner, "write"))
    inner.seek(0)
    assert torch.load(Few(inner, "read", "readline", "seek", "tell"))["a"].tolist() == [0, 1, 2]


def test_saving_into_an_open_file_leaves_nothing_in_its_buffer(tmp_path):
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save(torch.ones(3), file)
        assert torch.load(tmp_path / "x.pt").tolist() == [1, 1, 1]


def test_archives_of_records():
    buffer = io.BytesIO()
    with torch.serialization._open_zipfile_writer(buffer) as archive:
        archive.write_record("a/b", b"12345", 4)
    buffer.seek(0)
    with torch.serialization._open_zipfile_reader(buffer) as archive:
        assert archive.get_record("a/b") == b"1234"


def test_storages_are_copied_filled_and_made_from_buffers(tmp_path):
    assert torch.Storage is torch.FloatStorage
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
    copied = storage.clone().fill_(7)
    assert (copied.tolist(), storage.tolist(), storage.element_size()) == ([7] * 4, [0, 1, 2, 3], 1)
    assert torch.UntypedStorage(4).copy_(storage).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="self was 3 bytes but src was 4 bytes"):
        torch.UntypedStorage(3).copy_(storage)
    data = bytearray([1, 2, 3, 4])
    assert torch.UntypedStorage.from_buffer(data, "big", dtype=torch.int16).tolist() == [2, 1, 4, 3]
    assert torch.ShortStorage.from_buffer(data, "big").tolist() == [258, 772]
    assert torch.ByteStorage.from_buffer(data, "native", 1, 2).tolist() == [3]
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.FloatStorage.from_buffer(data[:3], "little")
    (tmp_path / "numbers").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    assert torch.FloatStorage.from_file(str(tmp_path / "numbers"), False, 3).tolist() == [0, 1, 2]


def test_flags_of_conjugation_and_negation_are_set():
    z = torch.tensor([1 + 2j])
    torch._C._set_conj(z, True)
    torch._C._set_neg(z, True)
    assert z.is_conj() and z.is_neg() and z.tolist() == [-1 + 2j]
    torch._C._set_conj(z, False)
    torch._C._set_neg(z, False)
    assert not z.is_conj() and not z.is_neg() and z.tolist() == [1 + 2j]


def test_handles_of_one_storage_are_told_by_a_number():
    x = torch.zeros(4)
    assert x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata == x.storage()._cdata
    assert x.storage()._cdata != x.clone().storage()._cdata


@pytest.mark.parametrize("make", [lambda z: z.conj(), lambda z: z.conj().imag, torch._neg_view, lambda z: torch._neg_view(z).conj()],
                         ids=["conj", "imag_of_conj", "neg", "neg_conj"])
def test_what_waits_to_be_conjugated_or_negated_keeps_its_values(make):
    z = torch.tensor([1 + 2j, 3 - 1j])
    x = make(z)
    for back in (roundtrip(x), pickle.loads(pickle.dumps(x))):
        assert back.tolist() == x.tolist()
        assert (back.is_conj(), back.is_neg()) == (x.is_conj(), x.is_neg())
    assert copy.deepcopy(x).tolist() == x.tolist()
    assert x.__reduce_ex__(2)[1][-1] == {k: True for k, waits in (("conj", x.is_conj()), ("neg", x.is_neg())) if waits}
