# The zip container of checkpoints: stored records, each aligned so that it can be mapped into memory. The writer only
# needs `write`; the reader checks what the container claims before anything is allocated.
import io
import os
import pathlib
import struct
import zipfile
import zlib

import numpy as np

ALIGNMENT = 64
MAX_VERSION = 10
_LIMIT32 = 0xFFFFFFFF
_CORRUPT = (
    " This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)
# a stored record cannot grow; a compressed one may by this much, which real weights never reach
_MAX_RATIO = 200
_RATIO_SLACK = 1 << 20


class ZipWriter:
    """Writes records `name -> bytes` under the folder `archive`, in PyTorch's layout."""

    def __init__(self, file, archive):
        self._file = file
        self._archive = archive
        self._position = 0
        self._entries = []

    def _write(self, data):
        self._file.write(data)
        self._position += len(data)

    def write_record(self, name, data, size=None):
        """One record; `data` is bytes or a flat uint8 array, of which the first `size` bytes count."""
        data = data if size is None else data[:size]
        data = memoryview(data).cast("B") if len(data) else memoryview(b"")
        path = f"{self._archive}/{name}".encode()
        size, offset = data.nbytes, self._position
        crc = zlib.crc32(data)
        zip64 = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LIMIT32 else b""
        # "FB" is the padding field's tag
        start = offset + 30 + len(path) + len(zip64) + 4
        padding = -start % ALIGNMENT
        extra = zip64 + struct.pack("<HH", 0x4246, padding) + b"Z" * padding
        shown = min(size, _LIMIT32)
        header = struct.pack(
            "<IHHHHHIIIHH", 0x04034B50, 45 if zip64 else 20, 0x800, 0, 0, 0x21, crc, shown, shown, len(path), len(extra)
        )
        self._write(header + path + extra)
        self._write(data)
        self._entries.append((path, crc, size, offset))

    def serialization_id(self):
        """Forty digits that tell checkpoints apart: of the names, and of the contents."""
        names = zlib.crc32(b"\0".join(path for path, *_ in self._entries))
        contents = 0
        for _, crc, size, _ in self._entries:
            contents = zlib.crc32(struct.pack("<IQ", crc, size), contents)
        return f"{names:020d}{contents:020d}".encode()

    def finish(self):
        """Writes the records that tell a checkpoint by."""
        self.write_record("version", b"3\n")
        self.write_record(".data/serialization_id", self.serialization_id())

    def close(self):
        """Writes the directory."""
        start = self._position
        for path, crc, size, offset in self._entries:
            wide = []
            if size >= _LIMIT32:
                wide += [size, size]
            if offset >= _LIMIT32:
                wide.append(offset)
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            shown = min(size, _LIMIT32)
            version = 45 if wide else 20
            header = struct.pack(
                "<IHHHHHHIIIHHHHHII", 0x02014B50, version, version, 0x800, 0, 0, 0x21, crc, shown, shown, len(path),
                len(extra), 0, 0, 0, 0, min(offset, _LIMIT32),
            )  # fmt: skip
            self._write(header + path + extra)
        size = self._position - start
        count = len(self._entries)
        if start >= _LIMIT32 or size >= _LIMIT32 or count >= 0xFFFF:
            directory = self._position
            self._write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, start))
            self._write(struct.pack("<IIQI", 0x07064B50, 0, directory, 1))
        few = min(count, 0xFFFF)
        self._write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, few, few, min(size, _LIMIT32), min(start, _LIMIT32), 0))
        if hasattr(self._file, "flush"):  # whoever opens the file by its name next finds all of it
            self._file.flush()


class _Seekable:
    """A file-like object that can read and seek, with the further names that zipfile asks for."""

    def __init__(self, file):
        self._file = file
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def seekable(self):
        return True


class ZipReader:
    """Reads a checkpoint's records. RuntimeError in plain words for what is broken, truncated or swollen."""

    def __init__(self, file, path=None):
        self._file = file
        self._path = path
        try:
            self._zip = zipfile.ZipFile(file if hasattr(file, "seekable") else _Seekable(file))
            self._names = {info.filename: info for info in self._zip.infolist()}
        except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError, EOFError) as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory." + _CORRUPT
            ) from error
        if not self._names:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: archive does not contain any files")
        file.seek(0, io.SEEK_END)
        total = file.tell()
        if sum(info.compress_size for info in self._names.values()) > total:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: its records overlap." + _CORRUPT)
        self.archive = next(iter(self._names)).split("/", 1)[0]
        self._check_version()

    def _check_version(self):
        name = "version" if self.has_record("version") else ".data/version"
        if not self.has_record(name):
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
        try:
            version = int(self.read_record(name))
        except ValueError:
            raise RuntimeError("the version record of the checkpoint is no number." + _CORRUPT)
        if version > MAX_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for "
                f"reading is {MAX_VERSION}. The version of your PyTorch installation may be too old, please upgrade "
                "PyTorch to latest version to mitigate this issue."
            )

    def has_record(self, name):
        """Whether the archive has a record."""
        return f"{self.archive}/{name}" in self._names

    def record_names(self):
        """Names of all records, without the archive's folder."""
        prefix = len(self.archive) + 1
        return [name[prefix:] for name in self._names]

    def _info(self, name):
        info = self._names.get(f"{self.archive}/{name}")
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found." + _CORRUPT)
        if info.file_size > info.compress_size * _MAX_RATIO + _RATIO_SLACK:
            raise RuntimeError(
                f"record {name} claims {info.file_size} bytes out of {info.compress_size} compressed ones; "
                "refusing to unpack it"
            )
        return info

    def record_size(self, name):
        """Size in bytes that the directory claims."""
        return self._info(name).file_size

    def read_into(self, name, array):
        """Fills a flat uint8 array with a record of its size; the checksum is verified."""
        info = self._info(name)
        try:
            with self._zip.open(info) as record:
                view, filled = memoryview(array), 0
                while filled < len(view):
                    count = record.readinto(view[filled : filled + (1 << 24)])
                    if not count:
                        break
                    filled += count
                record.read(1)  # at the end the checksum is compared
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}." + _CORRUPT) from error
        if filled != len(view):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is too short." + _CORRUPT)

    def read_record(self, name):
        """A record as bytes."""
        array = np.empty(self.record_size(name), np.uint8)
        self.read_into(name, array)
        return array.tobytes()

    get_record = read_record

    def map_record(self, name):
        """A record as a private memory map of the file (copy on write)."""
        info = self._info(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise RuntimeError(f"record {name} is compressed and cannot be mapped; load without mmap")
        self._file.seek(info.header_offset)
        header = self._file.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: bad local header." + _CORRUPT)
        name_size, extra_size = struct.unpack("<HH", header[26:30])
        offset = info.header_offset + 30 + name_size + extra_size
        if info.file_size == 0:
            return np.empty(0, np.uint8)
        try:
            return np.memmap(self._path, np.uint8, "c", offset, (info.file_size,))
        except ValueError as error:
            raise RuntimeError(f"PytorchStreamReader failed mapping file {name}: {error}." + _CORRUPT) from error


class PyTorchFileReader(ZipReader):
    """The records of a checkpoint at a path or in a seekable file. Source: PyTorch, torch.PyTorchFileReader."""

    def __init__(self, name_or_buffer):
        path = isinstance(name_or_buffer, (str, os.PathLike))
        super().__init__(open(name_or_buffer, "rb") if path else name_or_buffer, name_or_buffer if path else None)

    get_all_records = ZipReader.record_names


class PyTorchFileWriter(ZipWriter):
    """Writes the records of a checkpoint to a path or a file; `write_end_of_file` ends it. Source: PyTorch, torch.PyTorchFileWriter."""

    def __init__(self, name_or_buffer):
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self._own = open(name_or_buffer, "wb") if path else None
        super().__init__(self._own if path else name_or_buffer, pathlib.PurePath(name_or_buffer).stem if path else "archive")

    def archive_name(self):
        """The folder of the records."""
        return self._archive

    def write_end_of_file(self):
        """Writes what tells the checkpoint by, and the directory."""
        self.finish()
        self.close()
        if self._own is not None:
            self._own.close()
