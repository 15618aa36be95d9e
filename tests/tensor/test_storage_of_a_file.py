"""UntypedStorage.from_file: the bytes of a file, private or shared, as readers of checkpoint files use them."""

import pytest
import torch


@pytest.fixture
def path(tmp_path):
    (tmp_path / "bytes").write_bytes(bytes(range(16)))
    return str(tmp_path / "bytes")


def test_private_bytes(path):
    storage = torch.UntypedStorage.from_file(path, False, 8)
    assert storage.nbytes() == 8 and storage.tolist() == list(range(8)) and storage[2:4].tolist() == [2, 3]
    assert storage.untyped() is storage
    storage[0] = 99
    assert storage[0] == 99 and open(path, "rb").read(1) == b"\0"
    words = torch.asarray(torch.UntypedStorage.from_file(path, nbytes=16)[4:12], dtype=torch.uint8).view(dtype=torch.int16)
    assert words.tolist() == [1284, 1798, 2312, 2826]
    assert torch.UntypedStorage.from_file(path).nbytes() == 0


def test_shared_bytes_are_written_to_the_file(path, tmp_path):
    torch.UntypedStorage.from_file(path, True, 16)[0] = 77
    assert open(path, "rb").read(2) == b"\x4d\x01"
    made = torch.UntypedStorage.from_file(str(tmp_path / "new"), shared=True, nbytes=4)
    made[3] = 5
    assert (tmp_path / "new").read_bytes() == b"\0\0\0\x05"


def test_errors(path):
    with pytest.raises(RuntimeError, match="size <16> is smaller than the required mapping size <80>"):
        torch.UntypedStorage.from_file(path, nbytes=80)
    with pytest.raises(RuntimeError, match="unable to open file <nowhere> in read-only mode: No such file or directory \\(2\\)"):
        torch.UntypedStorage.from_file("nowhere", nbytes=8)
