"""Mistakes of the archive and of the JSON text."""

import json
import random
import struct
import zipfile

from archive import central_record, end_record, local_header, patch

MODEL = "models/model.json"


def make(files):
    containers(files)
    directories(files)
    entries(files)
    texts(files)


def containers(files):
    whole = bytes(files.base().pack())
    files.raw("zip_empty_file", b"", "the file has no bytes")
    files.raw("zip_one_byte", b"P", "the file has one byte")
    files.raw("zip_text", b"this is not an archive\n" * 20, "the file is text")
    files.raw("zip_elf", b"\x7fELF" + bytes(200), "the file is a program")
    files.raw("zip_zeros", bytes(4096), "the file is all zeros")
    files.raw("zip_only_end_record", whole[end_record(whole):], "the file is an end record that points at nothing")
    for part in (1, 10, 50, 90, 99):
        files.raw(f"zip_truncated_{part}_percent", whole[:len(whole) * part // 100], f"the file ends after {part} percent")
    files.raw("zip_truncated_end_record", whole[:-5], "the end record is cut off")
    files.raw("zip_start_missing", whole[100:], "the first 100 bytes are missing")
    files.raw("zip_bytes_before", b"x" * 64 + whole, "64 bytes stand before the archive, so that every offset is wrong")
    noise = random.Random(1)
    files.raw("zip_noise", bytes(noise.randrange(256) for _ in range(5000)), "the file is noise")
    empty = files.base()
    empty.entries = {}
    files.add("zip_no_entries", empty, "the archive has no entries")
    archive = files.base()
    files.raw("zip_deflated", archive.pack(method=zipfile.ZIP_DEFLATED), "deflated entries are legal", verdict="good")
    files.raw("zip_other_root", archive.pack(root="another name"), "any root folder is legal", verdict="good")
    archive.entries = dict(reversed(list(archive.entries.items())))
    files.raw("zip_other_order", archive.pack(), "entries in any order are legal", verdict="good")
    archive = files.base()
    for name in ("byteorder", ".data/serialization_id"):
        del archive.entries[name]
    files.add("zip_optional_entries_missing", archive, "byteorder and serialization_id may be missing", verdict="good")


def directories(files):
    def number(name, mistake, at, form, value):
        data = files.base().pack()
        struct.pack_into(form, data, end_record(data) + at, value)
        files.raw(name, data, mistake)

    number("zip_more_entries_than_listed", "the end record promises more entries than the directory has", 10, "<H", 60000)
    number("zip_no_entries_listed", "the end record says there are no entries", 10, "<H", 0)
    number("zip_directory_beyond_end", "the directory lies behind the end of the file", 16, "<I", 0x7FFFFFF0)
    number("zip_directory_too_long", "the directory is longer than the file", 12, "<I", 0x7FFFFFF0)
    number("zip_directory_in_data", "the directory's offset points into data", 16, "<I", 40)
    number("zip_second_disk", "the archive claims to be part of several disks", 4, "<H", 3)

    def patched(name, mistake, *where, entry=MODEL, verb="all"):
        files.raw(name, patch(files.base().pack(), entry, *where), mistake, verb)

    patched("entry_encrypted", "an entry is marked as encrypted", 8, 6, "<H", 1)
    patched("entry_strongly_encrypted", "an entry is marked as strongly encrypted", 8, 6, "<H", 0x41)
    patched("entry_method_bzip2", "an entry is compressed by method 12", 10, 8, "<H", 12)
    patched("entry_method_lzma", "an entry is compressed by method 14", 10, 8, "<H", 14)
    patched("entry_method_unknown", "an entry is compressed by method 77", 10, 8, "<H", 77)
    patched("entry_method_differs", "local header and directory disagree about the method", None, 8, "<H", 8)
    patched("entry_offset_beyond_end", "an entry begins behind the end of the file", 42, None, "<I", 0x7FFFFFF0)
    patched("entry_offset_in_directory", "an entry begins inside the directory", 42, None, "<I",
            central_record(files.base().pack(), MODEL))
    patched("entry_offset_of_another", "an entry's offset points at another entry", 42, None, "<I",
            local_header(files.base().pack(), "weight_0"))
    patched("entry_size_beyond_end", "a stored entry is longer than the file", 20, 18, "<I", 0x7FFFFFF0)
    patched("entry_sizes_differ", "a stored entry has two different sizes", 24, 22, "<I", 5)
    patched("entry_size_4_gib", "an entry claims 4 GiB without a zip64 field", 24, None, "<I", 0xFFFFFFFF)
    patched("entry_name_too_long", "an entry's name reaches behind the directory", 28, None, "<H", 0xFFFF)
    patched("entry_extra_too_long", "an entry's extra field reaches behind the file", None, 28, "<H", 0xFFFF)
    patched("entry_bad_local_signature", "a local header has a wrong signature", None, 0, "<I", 0x11111111)
    patched("entry_bad_directory_signature", "a directory record has a wrong signature", 0, None, "<I", 0x11111111)
    patched("crc_of_model", "the program's JSON has a wrong checksum", 16, 14, "<I", 0x12345678)
    patched("crc_of_config", "the weights config has a wrong checksum", 16, 14, "<I", 0x12345678, entry="weights_config.json")
    patched("crc_of_weight", "a weight has a wrong checksum", 16, 14, "<I", 0x12345678, entry="weights/weight_0", verb="weights")
    patched("crc_of_samples", "the sample inputs have a wrong checksum", 16, 14, "<I", 0x12345678, entry="model.pt", verb="run")
    deflated = files.base().pack(method=zipfile.ZIP_DEFLATED)
    start = local_header(deflated, MODEL)
    begin = start + 30 + sum(struct.unpack_from("<HH", deflated, start + 26))
    broken = bytearray(deflated)
    broken[begin:begin + 8] = b"\xff" * 8
    files.raw("deflate_broken", broken, "a deflated entry does not inflate")
    files.raw("deflate_longer_than_said", patch(bytearray(deflated), MODEL, 24, 22, "<I", 100),
              "a deflated entry gives more bytes than it says")
    files.raw("deflate_shorter_than_said", patch(bytearray(deflated), MODEL, 24, 22, "<I", 9_000_000),
              "a deflated entry gives fewer bytes than it says")
    bomb = files.base()
    bomb.entries[MODEL] = b" " * 300_000_000
    files.raw("deflate_bomb", bomb.pack(method=zipfile.ZIP_DEFLATED), "a small entry inflates to 300 MB of spaces")


def entries(files):
    base = files.base()
    root = base.root
    files.raw("duplicate_model", base.pack([(f"{root}/{MODEL}", base.entries[MODEL])]), "two entries have the same name")
    files.raw("duplicate_weight", base.pack([(f"{root}/data/weights/weight_0", bytes(252))]), "two weights have the same name")
    files.raw("two_roots", base.pack([("other/archive_format", b"pt2")]), "entries lie in two root folders")
    files.raw("no_root", base.pack(root=""), "entries lie in no root folder")
    files.raw("entry_escapes", base.pack([(f"{root}/../../evil", b"x")]), "an entry's name leads out of the archive")
    files.raw("entry_absolute", base.pack([("/etc/evil", b"x")]), "an entry's name is an absolute path")
    for entry, what in ((MODEL, "the program's JSON"), ("archive_format", "the archive_format entry"),
                        ("archive_version", "the archive_version entry"), (".data/version", "the .data/version entry"),
                        ("data/weights/model_weights_config.json", "the weights config"),
                        ("data/constants/model_constants_config.json", "the constants config"),
                        ("data/weights/weight_0", "the payload of a weight")):
        archive = files.base()
        del archive.entries[entry]
        files.add(f"missing_{entry.split('/')[-1].strip('.').replace('.json', '')}", archive, f"{what} is missing")
    archive = files.base()
    del archive.entries["data/sample_inputs/model.pt"]
    files.add("missing_sample_inputs", archive, "the sample inputs are missing", "run")
    for name, entry, text, what in (
            ("archive_format_other", "archive_format", b"onnx", "archive_format is another one"),
            ("archive_version_1", "archive_version", b"1", "archive_version is newer"),
            ("archive_version_text", "archive_version", b"zero", "archive_version is not a number"),
            ("archive_version_empty", "archive_version", b"", "archive_version is empty"),
            ("zip_version_99", ".data/version", b"99\n", "the zip format version is newer"),
            ("byteorder_big", "byteorder", b"big", "the payloads are in big-endian order")):
        archive = files.base()
        archive.entries[entry] = text
        files.add(name, archive, what)
    archive = files.base()
    archive.entries["models/other.json"] = archive.entries.pop(MODEL)
    files.add("model_of_another_name", archive, "the archive has a program, but not under the name model")


def texts(files):
    def text(name, mistake, data, entry=MODEL, verdict="bad"):
        archive = files.base()
        archive.entries[entry] = data
        files.add(name, archive, mistake, verdict=verdict)

    model = files.base().entries[MODEL]
    text("json_empty", "the program's JSON is empty", b"")
    text("json_truncated", "the program's JSON ends in the middle", model[:len(model) // 2])
    text("json_garbage", "the program's JSON is not JSON", b"{]")
    text("json_trailing", "something follows the program's JSON", model + b" {}")
    text("json_not_utf8", "the program's JSON is not UTF-8", model.replace(b'"linear"', b'"lin\xff\xfear"', 1))
    text("json_list", "the program's JSON is a list", b"[]")
    text("json_null", "the program's JSON is null", b"null")
    text("json_number", "the program's JSON is a number", b"8")
    text("json_deep_lists", "the program's JSON is nested a million times", b"[" * 1_000_000)
    text("json_deep_objects", "the program's JSON is nested 200000 times", b'{"a":' * 200_000 + b"1" + b"}" * 200_000)
    text("json_duplicate_key", "a key occurs twice", model.replace(b'{"graph_module":', b'{"graph_module": {}, "graph_module":', 1))
    text("json_duplicate_inner_key", "a key of a tensor occurs twice", model.replace(b'"dtype": 7,', b'"dtype": 7, "dtype": 8,', 1))
    text("json_huge_number", "a size has 400 digits", model.replace(b'{"as_int": 9}', b'{"as_int": ' + b"9" * 400 + b"}", 1))
    text("json_fraction_for_integer", "a size is not whole", model.replace(b'{"as_int": 9}', b'{"as_int": 9.5}', 1))
    text("json_bare_nan", "a bare NaN stands where an integer must", model.replace(b'{"as_int": 9}', b'{"as_int": NaN}', 1))
    text("json_nul_in_string", "a name contains a NUL", model.replace(b'"fqn": ""', b'"fqn": "\\u0000"', 1))
    text("json_lone_surrogate", "a name contains half a character",
         model.replace(b'"name": "linear"', b'"name": "\\ud800"'))
    text("json_with_spaces", "white space is legal", json.dumps(files.base().model, indent=3).encode(), verdict="good")
    config = "data/weights/model_weights_config.json"
    text("config_garbage", "the weights config is not JSON", b"{", config)
    text("config_list", "the weights config is a list", b"[]", config)
    text("config_without_config", "the weights config lacks its only key", b"{}", config)
    text("constants_config_garbage", "the constants config is not JSON", b"nope", "data/constants/model_constants_config.json")
