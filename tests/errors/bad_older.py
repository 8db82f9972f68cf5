"""Mistakes of files that PyTorch 2.4 to 2.8 wrote: flat archives, weights that are pickles, schemas that are upgraded."""

import io
import json
import pathlib
import pickle
import struct
import zipfile

from archive import Archive

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"
PROGRAM = "serialized_exported_program.json"
STATE, CONSTANTS, SAMPLES = "serialized_state_dict.pt", "serialized_constants.pt", "serialized_example_inputs.pt"


class Flat(Archive):
    """A file of the first format, which has no root folder."""

    def __init__(self, release="2.4", name="a_mlp_dynamic"):
        with zipfile.ZipFile(DATA / f"torch-{release}" / f"{name}.pt2") as archive:
            self.root = ""
            self.entries = {entry: archive.read(entry) for entry in archive.namelist()}

    @property
    def program(self):
        return json.loads(self.entries[PROGRAM])

    @program.setter
    def program(self, value):
        self.entries[PROGRAM] = json.dumps(value).encode()


def inner(data):
    """The entries of a torch.save file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def outer(entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=method)
    return out.getvalue()


def make(files):
    container(files)
    upgrades(files)
    pickles(files)
    release_2_8(files)


def container(files):
    def without(name, entry, mistake, **options):
        archive = Flat()
        del archive.entries[entry]
        files.add(name, archive, mistake, **options)

    def replaced(name, entry, data, mistake, **options):
        archive = Flat()
        archive.entries[entry] = data
        files.add(name, archive, mistake, **options)

    without("flat_no_version", "version", "a flat archive has no version")
    without("flat_no_weights", STATE, "a flat archive has no weights")
    without("flat_no_constants", CONSTANTS, "a flat archive has no constants")
    without("flat_no_samples", SAMPLES, "a flat archive without samples is one without", verb="run")
    replaced("flat_version_text", "version", b"five", "the version is no number")
    replaced("flat_version_three", "version", b"5.3.1", "the version has three parts")
    replaced("flat_program_empty", PROGRAM, b"", "the program is empty")
    replaced("flat_program_list", PROGRAM, b"[]", "the program is a list")
    replaced("flat_program_binary", PROGRAM, bytes(range(256)), "the program is no text")
    replaced("flat_weights_empty", STATE, b"", "the weights are empty, and the program has parameters")
    replaced("flat_weights_junk", STATE, b"junk" * 10, "the weights are no archive")
    replaced("flat_weights_text", STATE, outer({"a/data.pkl": b"text"}), "the weights' pickle is text")
    replaced("flat_samples_junk", SAMPLES, b"junk" * 10, "the samples are no archive", verb="run")
    archive = Flat()
    state = archive.entries.pop(STATE)
    archive.entries["serialized_state_dict.json"] = state
    files.add("flat_old_ending", archive, "the ending that weights had before 2.4", verdict="good")
    archive = Flat()
    archive.entries["extra_files/a/b.txt"] = b"text"
    files.add("flat_extra", archive, "a flat archive with a file of the user", verdict="good")
    archive = Flat()
    files.raw("flat_in_a_folder", archive.pack(root="folder"), "a flat archive packed with its folder")
    files.raw("flat_deflated", archive.pack(method=zipfile.ZIP_DEFLATED), "a flat archive packed again, deflated", verdict="good")
    files.raw("flat_cut", archive.pack()[:-40], "a flat archive is cut")
    bomb = outer({**inner(archive.entries[STATE]), "a_mlp_dynamic/data/zeros": bytes(300 << 20)}, zipfile.ZIP_DEFLATED)
    archive.entries[STATE] = bomb
    files.add("flat_weights_bomb", archive, "the weights inflate to 300 MB that nothing names", verdict="good")


def upgrades(files):
    def program(name, mistake, change, base=("2.4", "a_mlp_dynamic"), **options):
        archive = Flat(*base)
        model = archive.program
        changed = change(model)
        archive.program = model if changed is None else changed
        files.add(name, archive, mistake, **options)

    def version(major, minor):
        return lambda p: p["schema_version"].update(major=major, minor=minor)

    program("old_schema_3", "the schema is older than 2.4", version(3, 2))
    program("old_schema_9", "the schema is newer", version(9, 0))
    program("old_schema_text", "the schema version is text", version("5", 3))
    program("old_schema_missing", "there is no schema version", lambda p: p.pop("schema_version") and None)
    program("old_as_newest", "a program of schema 5 that says it is of 8.20, and needs no upgrade", version(8, 20), verdict="good")
    program("old_dialect_number", "the dialect is a number", lambda p: p.update(dialect=5))
    program("old_dialect_edge", "the dialect is one of another package", lambda p: p.update(dialect="EDGE"))
    program("old_no_graph_module", "the program has no graph module", lambda p: p.pop("graph_module") and None)
    program("old_graph_list", "the graph is a list", lambda p: p["graph_module"].update(graph=[]))
    program("old_nodes_object", "the nodes are an object", lambda p: p["graph_module"]["graph"].update(nodes={"a": 1}))
    program("old_node_number", "a node is a number", lambda p: p["graph_module"]["graph"]["nodes"].append(7))
    program("old_target_number", "an operator's name is a number",
            lambda p: p["graph_module"]["graph"]["nodes"][0].update(target=7))
    program("old_target_module", "an operator is a function of a module",
            lambda p: p["graph_module"]["graph"]["nodes"][0].update(target="torch._higher_order_ops.os.system"), verb="operators")
    program("old_range_text", "a range ends with text", lambda p: [r.update(max_val="far") for r in p["range_constraints"].values()] and None)
    program("old_range_nan", "a range ends with NaN", lambda p: [r.update(max_val=float("nan")) for r in p["range_constraints"].values()] and None)
    program("old_symbol_without_range", "a size of an input without a range is legal", lambda p: p.update(range_constraints={}), verdict="good")
    program("old_region_results", "a region gives results of the wrong form",
            lambda p: [n.update(outputs=[{"as_tensors": [{"name": "ghost"}]}]) for n in p["graph_module"]["graph"]["nodes"]
                       if "higher_order" in n["target"]] and None, base=("2.6", "l_no_grad_region"))
    program("old_region_list", "the outputs of a region are a number",
            lambda p: [n.update(outputs=3) for n in p["graph_module"]["graph"]["nodes"] if "higher_order" in n["target"]] and None,
            base=("2.6", "l_no_grad_region"))
    program("old_qr_flag", "an argument of a retired operator is text",
            lambda p: [i.update(arg={"as_string": "no"}) for n in p["graph_module"]["graph"]["nodes"] if n["target"].endswith("qr.default")
                       for i in n["inputs"] if i["name"] == "some"] and None, base=("2.6", "m_retired_operators"), verdict="good")

    def nested(p):
        deep = {"as_none": []}
        for _ in range(500):
            deep = {"as_none": deep}
        p["graph_module"]["graph"]["inputs"].append(deep)
    program("old_nested_deeply", "arguments nest 500 deep", nested)


class Marked:
    """What a hostile pickle would run; the reader must only name it."""

    def __reduce__(self):
        import os
        return os.system, ("touch executed",)


def pickles(files):
    def weights(name, mistake, value=None, raw=None, storages=None, entry=STATE, release="2.4", **options):
        archive = Flat(release)
        parts = inner(archive.entries[entry])
        root = next(iter(parts)).split("/")[0]
        parts[f"{root}/data.pkl"] = pickle.dumps(value, protocol=2) if raw is None else raw(parts[f"{root}/data.pkl"])
        if storages is not None:
            parts = storages(parts, root)
        archive.entries[entry] = outer(parts)
        files.add(name, archive, mistake, **options)

    weights("weights_call", "the weights call a function of the system", {"0.weight": Marked()})
    weights("weights_call_alone", "the weights are a call", Marked())
    weights("weights_list", "the weights are a list", [1, 2])
    weights("weights_numbers", "the weights are numbers", {"0.weight": 3})
    weights("weights_keys", "the names of weights are numbers", {1: 2})
    weights("weights_none", "the weights are none", None)
    weights("weights_no_entries", "there are no weights, and the program has parameters", {})
    weights("constants_call", "the constants call a function of the system", {"c": Marked()}, entry=CONSTANTS)
    weights("constants_text", "a constant is text", {"c": "text"}, entry=CONSTANTS)
    weights("samples_call", "the samples call a function of the system", ((Marked(),), {}), entry=SAMPLES, verb="run")
    weights("weights_cut", "the weights' pickle is cut", raw=lambda data: data[:len(data) // 2])
    weights("weights_no_stop", "the weights' pickle does not end", raw=lambda data: data[:-1])
    weights("weights_other_storage", "a weight's storage is of no known class",
            raw=lambda data: data.replace(b"FloatStorage", b"OtherStorage"))
    weights("weights_other_function", "a weight is rebuilt by another function",
            raw=lambda data: data.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9"))
    weights("weights_other_module", "a weight is rebuilt by another module",
            raw=lambda data: data.replace(b"ctorch._utils\n", b"cother._utils\n"))
    weights("weights_other_name", "a weight is missing under its name", raw=lambda data: data.replace(b"0.weight", b"9.weight"))
    weights("weights_wider", "a weight's elements need more bytes than its storage has",
            raw=lambda data: data.replace(b"FloatStorage", b"DoubleStorage"))
    weights("weights_meta_device", "a weight lies nowhere", raw=lambda data: data.replace(b"X\x03\0\0\0cpu", b"X\x04\0\0\0meta"),
            verb="compute")
    weights("weights_device_text", "a weight's device is nonsense", raw=lambda data: data.replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:x"))
    weights("weights_on_cuda", "a weight lies on a GPU", raw=lambda data: data.replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0"),
            verb="compute")
    weights("weights_storage_missing", "a weight's storage is missing", raw=lambda data: data,
            storages=lambda parts, root: {n: d for n, d in parts.items() if n != f"{root}/data/0"})
    weights("weights_storage_short", "a weight's storage is too short", raw=lambda data: data,
            storages=lambda parts, root: {n: d[:-1] if n == f"{root}/data/0" else d for n, d in parts.items()})
    weights("weights_big_endian", "the weights come from a big-endian machine", raw=lambda data: data,
            storages=lambda parts, root: {**parts, f"{root}/byteorder": b"big"})
    weights("weights_tuple_bomb", "tuples of tuples that double 60 times", raw=lambda data: b"\x80\x02)" + b"2\x86" * 60 + b".")
    weights("weights_memo_bomb", "a list that holds itself", raw=lambda data: b"\x80\x02]q\0h\0a.")
    weights("weights_long", "a string of 4 GB is announced", raw=lambda data: b"\x80\x02X" + struct.pack("<I", 2**32 - 1) + b"a.")
    weights("weights_many", "a million empty dicts", raw=lambda data: b"\x80\x02](" + b"}" * 1_000_000 + b"e.")
    weights("weights_frame", "a frame larger than the pickle", raw=lambda data: b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"N.")

    # Damage within a storage is found when it is copied, which a flat archive needs: it aligns nothing.
    archive = Flat()
    state = bytearray(archive.entries[STATE])
    with zipfile.ZipFile(io.BytesIO(archive.entries[STATE])) as parts:
        info = next(i for i in parts.infolist() if i.filename.endswith("data/0"))
    names, extra = struct.unpack_from("<HH", state, info.header_offset + 26)
    state[info.header_offset + 30 + names + extra + 1] ^= 1
    archive.entries[STATE] = bytes(state)
    files.add("weights_damaged", archive, "a byte of a weight is another")


def release_2_8(files):
    def change(name, mistake, entry, data, **options):
        archive = Archive(DATA / "torch-2.8" / "a_mlp_dynamic.pt2")
        if data is None:
            del archive.entries[entry]
        else:
            archive.entries[entry] = data
        files.add(name, archive, mistake, **options)

    change("pickled_no_constants", "a file of 2.8 has no constants", "data/constants/model.pt", None)
    change("pickled_weights_junk", "the weights of a file of 2.8 are junk", "data/weights/model.pt", b"junk" * 20)
    change("pickled_weights_call", "the weights of a file of 2.8 call a function of the system", "data/weights/model.pt",
           outer({"a/data.pkl": pickle.dumps({"0.weight": Marked()}, protocol=2)}))
    change("pickled_samples_none", "a file of 2.8 without samples", "data/sample_inputs/model.pt", b"", verb="run")
