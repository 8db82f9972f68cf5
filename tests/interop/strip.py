"""Removes from an exported program what names the machine it was made on."""

import pathlib
import zipfile


def strip_program(program):
    """Drops stack traces (they carry machine paths) from every node of every graph, in place."""
    for module in program.graph_module.modules():
        graph = getattr(module, "graph", None)
        if graph is None:
            continue
        for node in graph.nodes:
            for key in ("stack_trace", "from_node", "source_fn_stack"):
                node.meta.pop(key, None)
    return program


def strip_dates(path):
    """Rewrites a flat archive, the format up to PyTorch 2.7, without the time it was made at. Later ones carry none."""
    with zipfile.ZipFile(path) as archive:
        if "serialized_exported_program.json" not in archive.namelist():
            return
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def check_no_paths(path, words=()):
    """Fails if any entry of the archive contains a home, temporary or installation path."""
    suspects = [b"/home/", b"/tmp/", b"/usr/", b"site-packages", str(pathlib.Path.home()).encode(), str(pathlib.Path(__file__).resolve().parents[2]).encode(), *[w.encode() for w in words]]
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            data = archive.read(entry)
            for suspect in suspects:
                assert suspect not in data, f"{path}: {entry} contains {suspect!r}"
