"""Mistakes of weights, constants and sample inputs."""

import io
import pickle
import struct
import zipfile

WEIGHT = "data/weights/weight_0"
SAMPLES = "data/sample_inputs/model.pt"


def make(files):
    weights(files)
    constants(files)
    samples(files)


def weights(files):
    def payload(name, mistake, change, verb="all", verdict="bad"):
        archive = files.base()
        archive.entries[WEIGHT] = change(archive.entries[WEIGHT])
        files.add(name, archive, mistake, verb, verdict)

    payload("payload_short", "a weight's payload is too short by one byte", lambda data: data[:-1])
    payload("payload_half", "a weight's payload is half as long as its sizes say", lambda data: data[:len(data) // 2])
    # Of fake tensors PyTorch writes no bytes, and it reads them as zeros.
    payload("payload_empty", "a weight without bytes is zeros", lambda data: b"", verdict="good")
    payload("payload_longer", "a payload may be longer than the tensor needs", lambda data: data + bytes(64), verdict="good")

    def entry(name, mistake, verdict="bad", verb="all", **changes):
        files.config(name, mistake, lambda c: c["config"]["0.weight"].update(changes), verb=verb, verdict=verdict)

    def meta(name, mistake, verb="all", **changes):
        files.config(name, mistake, lambda c: c["config"]["0.weight"]["tensor_meta"].update(changes), verb=verb)

    files.config("config_entry_missing", "a parameter has no entry in the weights config", lambda c: c["config"].pop("0.weight") and None)
    files.config("config_entry_list", "an entry of the weights config is a list", lambda c: c["config"].update({"0.weight": []}))
    entry("config_path_missing", "the weights config names a payload that does not exist", path_name="weight_99")
    entry("config_path_escapes", "the weights config names a path outside", path_name="../../../etc/passwd")
    entry("config_path_number", "the weights config's path is a number", path_name=5)
    entry("config_pickled", "a weight is pickled", verb="compute", use_pickle=True)
    entry("config_pickle_flag_text", "the use_pickle flag is text", use_pickle="no")
    entry("config_meta_null", "a weight has no tensor_meta", tensor_meta=None)
    entry("config_meta_list", "a weight's tensor_meta is a list", tensor_meta=[1])
    meta("weight_dtype_unknown", "a weight's dtype code means nothing", dtype=99)
    meta("weight_dtype_missing", "a weight's dtype is none", dtype=None)
    meta("weight_dtype_wider", "a weight's dtype needs more bytes than its payload has", dtype=8)
    meta("weight_size_negative", "a weight's size is negative", sizes=[{"as_int": -9}, {"as_int": 7}])
    meta("weight_sizes_overflow", "a weight's number of elements does not fit",
         sizes=[{"as_int": 2**62}, {"as_int": 2**62}])
    meta("weight_bytes_overflow", "a weight's number of bytes wraps around", sizes=[{"as_int": 2**62}, {"as_int": 1}])
    meta("weight_size_symbolic", "a weight's size is symbolic",
         sizes=[{"as_expr": {"expr_str": "Symbol('s31', positive=True, integer=True)", "hint": {"as_int": 9}}}, {"as_int": 7}])
    meta("weight_larger_than_payload", "a weight needs more elements than its payload has", sizes=[{"as_int": 90}, {"as_int": 7}])
    meta("weight_stride_negative", "a weight's stride is negative", strides=[{"as_int": -7}, {"as_int": 1}])
    meta("weight_stride_huge", "a weight's stride reaches behind its payload", strides=[{"as_int": 2**61}, {"as_int": 1}])
    meta("weight_stride_missing", "a weight has fewer strides than sizes", strides=[{"as_int": 1}])
    meta("weight_offset_negative", "a weight's offset is negative", storage_offset={"as_int": -1})
    meta("weight_offset_beyond", "a weight begins behind its payload", storage_offset={"as_int": 1000})
    meta("weight_offset_huge", "a weight's offset overflows", storage_offset={"as_int": 2**63 - 1})
    meta("weight_sparse", "a weight is sparse", layout=1)
    meta("weight_on_cuda", "a weight lies on CUDA", verb="compute", device={"type": "cuda", "index": 0})


def constants(files):
    base = "j_tensor_constants"
    files.config("constant_missing", "a constant has no entry in the constants config", lambda c: c["config"].clear(), base,
                 "constants")
    files.config("constant_pickled", "a constant is pickled", lambda c: next(iter(c["config"].values())).update(use_pickle=True), base,
                 "constants", verb="compute")

    def custom(config):
        config["config"]["object"] = {"path_name": "custom_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}

    archive = files.base(base)
    config = archive.config("constants")
    custom(config)
    archive.set_config("constants", config)
    archive.entries["data/constants/custom_obj_0"] = b"PK\3\4 something"
    files.add("constant_custom_object", archive, "a constant is a custom object", verb="compute")
    archive = files.base(base)
    name = next(n for n in archive.entries if n.startswith("data/constants/tensor_"))
    archive.entries[name] = b""
    files.add("constant_payload_empty", archive, "a constant without bytes is zeros", verdict="good")


def pickled(*opcodes):
    return b"\x80\x02" + b"".join(opcodes) + b"."


def glob(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def saved(data_pkl, storages=(), method=zipfile.ZIP_STORED):
    """A torch.save file with this pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in (("data.pkl", data_pkl), ("byteorder", b"little"), ("version", b"3\n"),
                           *((f"data/{i}", s) for i, s in enumerate(storages))):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}", (1980, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def tensor(key="0", kind="FloatStorage", count=28, sizes=(4, 7), strides=(7, 1), offset=0, storage_module="torch",
           rebuild="_rebuild_tensor_v2"):
    """Opcodes that make a tensor as torch.save writes it."""
    def number(value):
        return b"\x8a\x08" + struct.pack("<q", value)

    def numbers(values):
        return b"(" + b"".join(number(v) for v in values) + b"t"

    storage = b"(" + text("storage") + glob(storage_module, kind) + text(key) + text("cpu") + number(count) + b"tQ"
    return glob("torch._utils", rebuild) + b"(" + storage + number(offset) + numbers(sizes) + numbers(strides) + b"\x89" + \
        glob("collections", "OrderedDict") + b")R" + b"tR"


def both(args):
    """((args,), {})"""
    return b"(" + args + b"\x85" + b"}t"


def samples(files):
    zeros = bytes(112)

    def sample(name, mistake, data, verdict="bad"):
        archive = files.base()
        archive.entries[SAMPLES] = data
        files.add(name, archive, mistake, "run", verdict)

    sample("samples_empty", "there are no sample inputs", b"")
    sample("samples_garbage", "the sample inputs are not an archive", b"garbage" * 10)
    sample("samples_by_hand", "sample inputs of a plain tensor are legal", saved(pickled(both(tensor())), [zeros]), "good")
    sample("samples_deflated", "deflated sample inputs are legal",
           saved(pickled(both(tensor())), [zeros], zipfile.ZIP_DEFLATED), "good")
    hostile = {
        "os_system": glob("os", "system") + text("true") + b"\x85R",
        "posix_system": glob("posix", "system") + text("true") + b"\x85R",
        "builtin_eval": glob("__builtin__", "eval") + text("1+1") + b"\x85R",
        "builtins_exec": glob("builtins", "exec") + text("pass") + b"\x85R",
        "getattr": glob("__builtin__", "getattr") + b"(" + glob("torch", "Tensor") + text("__class__") + b"tR",
        "subprocess": glob("subprocess", "Popen") + text("true") + b"\x85R",
        "torch_load": glob("torch", "load") + text("x.pt") + b"\x85R",
        "torch_hub": glob("torch.hub", "load") + text("x") + b"\x85R",
        "inst_opcode": b"(" + text("true") + b"ios\nsystem\n",
        "obj_opcode": b"(" + glob("os", "system") + text("true") + b"o",
        "build_on_global": glob("torch", "Tensor") + b"}b",
        "ext_opcode": b"\x82\x01",
        "user_class": glob("mine", "Thing") + b")\x81",
        "numpy_array": glob("numpy.core.multiarray", "_reconstruct") + b")R",
    }
    for name, opcodes in hostile.items():
        sample(f"samples_{name}", f"the sample inputs call something that is not allowed ({name})",
               saved(pickled(both(opcodes)), [zeros]))
    broken = {
        "no_stop": (both(tensor()), "the pickle does not end", lambda p: p[:-1]),
        "truncated": (both(tensor()), "the pickle is cut off", lambda p: p[:len(p) // 2]),
        "protocol_9": (both(tensor()), "the pickle's protocol is unknown", lambda p: b"\x80\x09" + p[2:]),
        "unknown_opcode": (b"\xff", "the pickle has an unknown opcode", None),
        "empty_stack": (b"t", "the pickle takes from an empty stack", None),
        "memo_missing": (b"h\x07", "the pickle uses a memo entry that does not exist", None),
        "memo_huge": (b"N" + b"r\xff\xff\xff\x7f", "the pickle writes a memo entry of number 2147483647", None),
        "string_too_long": (b"X\xff\xff\xff\x7fabc", "a string of the pickle is longer than the file", None),
        "long_too_long": (b"\x8a\xffabc", "a number of the pickle is longer than the file", None),
        "deep": (b"]" * 200_000 + b"a" * 199_999, "the pickle is nested 200000 times", None),
        "self_reference": (b"]q\x00h\x00a", "a list of the pickle contains itself", None),
        "not_args_and_kwargs": (b"K\x05", "the sample inputs are a number", None),
        "wrong_structure": (both(b"]"), "the sample inputs have another structure than the program's inputs", None),
        "too_many": (b"(" + tensor() + tensor() + b"\x86}t", "there are more sample inputs than inputs", None),
        "text_for_tensor": (both(text("x")), "a sample input is text where a tensor must be", None),
        "storage_missing": (both(tensor(key="7")), "a sample's storage does not exist", None),
        "storage_key_escapes": (both(tensor(key="../../data.pkl")), "a sample's storage key is a path", None),
        "storage_short": (both(tensor(count=500, sizes=(50, 7))), "a sample's storage is too short", None),
        "size_negative": (both(tensor(sizes=(-4, 7))), "a sample's size is negative", None),
        "size_overflow": (both(tensor(sizes=(2**62, 2**62))), "a sample's number of elements does not fit", None),
        "stride_huge": (both(tensor(strides=(2**61, 1))), "a sample's stride reaches behind its storage", None),
        "offset_negative": (both(tensor(offset=-1)), "a sample's offset is negative", None),
        "rank_mismatch": (both(tensor(strides=(1,))), "a sample has fewer strides than sizes", None),
        "other_dtype": (both(tensor(kind="IntStorage")), "a sample has another dtype than the input", None),
        "other_rank": (both(tensor(sizes=(28,), strides=(1,))), "a sample has another rank than the input", None),
        "other_size": (both(tensor(sizes=(7, 4), strides=(4, 1))), "a sample has another size than the input", None),
        "unknown_storage": (both(tensor(kind="DreamStorage")), "a sample's storage class is unknown", None),
        "unknown_rebuild": (both(tensor(rebuild="_rebuild_dream")), "a sample is rebuilt by an unknown function", None),
    }
    for name, (opcodes, mistake, change) in broken.items():
        data = pickled(opcodes)
        sample(f"samples_{name}", mistake, saved(change(data) if change else data, [zeros]))
    assert pickle.loads(pickled(b"(" + text("a") + b"t")) == ("a",)
