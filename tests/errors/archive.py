"""Reads a real .pt2 file into parts, and writes the parts as an archive that may be wrong on purpose."""

import copy
import io
import json
import struct
import warnings
import zipfile


class Archive:
    """The entries of a .pt2 file below its root folder, in order, with the JSON ones parsed on demand."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.root = archive.namelist()[0].split("/")[0]
            self.entries = {name.removeprefix(self.root + "/"): archive.read(name) for name in archive.namelist()}

    def copy(self):
        return copy.deepcopy(self)

    @property
    def model(self):
        return json.loads(self.entries["models/model.json"])

    @model.setter
    def model(self, value):
        self.entries["models/model.json"] = json.dumps(value).encode()

    def config(self, kind):
        return json.loads(self.entries[f"data/{kind}/model_{kind}_config.json"])

    def set_config(self, kind, value):
        self.entries[f"data/{kind}/model_{kind}_config.json"] = json.dumps(value).encode()

    def pack(self, extra=(), method=zipfile.ZIP_STORED, root=None):
        """The bytes of the archive; `extra` are further (full name, bytes), duplicates allowed."""
        root = self.root if root is None else root
        out = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
            warnings.simplefilter("ignore")
            for name, data in [(f"{root}/{name}" if root else name, data) for name, data in self.entries.items()] + list(extra):
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.compress_type = method
                archive.writestr(info, data)
        return bytearray(out.getvalue())


def central_record(data, suffix):
    """Where the central directory record of the entry whose name ends so begins."""
    at = struct.unpack_from("<I", data, end_record(data) + 16)[0]
    while data[at:at + 4] == b"PK\1\2":
        name_length, extra_length, comment_length = struct.unpack_from("<HHH", data, at + 28)
        if bytes(data[at + 46:at + 46 + name_length]).endswith(suffix.encode()):
            return at
        at += 46 + name_length + extra_length + comment_length
    raise KeyError(suffix)


def end_record(data):
    return data.rindex(b"PK\5\6")


def local_header(data, suffix):
    return struct.unpack_from("<I", data, central_record(data, suffix) + 42)[0]


def patch(data, suffix, central, local, form, value):
    """Writes a value at an offset of the entry's central record and at one of its local header (None: leave)."""
    if central is not None:
        struct.pack_into(form, data, central_record(data, suffix) + central, value)
    if local is not None:
        struct.pack_into(form, data, local_header(data, suffix) + local, value)
    return data
