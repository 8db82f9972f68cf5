"""Files of at most a megabyte that ask for much time, memory or text: they are refused, or shown, within the limits all the same."""

import copy
import io
import json
import zipfile

from archive import Archive  # noqa: F401


def make(files):
    lists(files)
    expressions(files)
    bombs(files)
    claims(files)


def graph(model):
    return model["graph_module"]["graph"]


def relu(name, operand, **more):
    return {"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": operand}}, "kind": 1}],
            "outputs": [{"as_tensor": {"name": name}}], "metadata": {}, "is_hop_single_tensor_return": None, "name": name, **more}


def lists(files):
    def many_nodes(model):
        meta = graph(model)["tensor_values"]["linear"]
        previous = "linear"
        for i in range(1500):
            graph(model)["tensor_values"][f"r{i}"] = copy.deepcopy(meta)
            graph(model)["nodes"].append(relu(f"r{i}", previous))
            previous = f"r{i}"

    files.model("many_nodes", "1500 nodes are legal", many_nodes, verdict="good")

    def many_ranges(model):
        model["range_constraints"].update({f"s{i}": {"min_val": 2, "max_val": 9} for i in range(1000, 20000)})

    files.model("many_ranges", "19000 ranges are legal", many_ranges, verdict="good")

    def many_calls(model):
        first = model["graph_module"]["module_call_graph"][0]
        for i in range(1000):
            model["graph_module"]["module_call_graph"].append(copy.deepcopy(first) | {"fqn": f"m{i}"})

    files.model("many_module_calls", "1000 calls of modules are legal", many_calls, verdict="good")

    def many_regions(model):
        meta = graph(model)["tensor_values"]["linear"]
        many_ranges(model)
        for i in range(150):
            inside = {"inputs": [{"as_tensor": {"name": "linear"}}], "outputs": [{"as_tensor": {"name": "r"}}], "nodes": [relu("r", "linear")],
                      "tensor_values": {"linear": meta, "r": meta}, "sym_int_values": {}, "sym_bool_values": {},
                      "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {}}
            graph(model)["tensor_values"][f"g{i}"] = meta
            graph(model)["nodes"].append({
                "target": "torch.ops.higher_order.wrap_with_set_grad_enabled",
                "inputs": [{"name": "", "arg": {"as_bool": False}, "kind": 1},
                           {"name": "", "arg": {"as_graph": {"name": "submod", "graph": inside}}, "kind": 1},
                           {"name": "", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}],
                "outputs": [{"as_tensor": {"name": f"g{i}"}}], "metadata": {}, "is_hop_single_tensor_return": False, "name": f"wrap{i}"})

    files.model("many_regions", "150 regions of one name beside 19000 ranges are legal", many_regions, verdict="good")

    def long_trace(model):
        trace = "".join(f'  File "m.py", line {i}, in f\n    x\n' for i in range(9000))
        meta = graph(model)["tensor_values"]["linear"] | {"sizes": [{"as_int": 1}], "strides": [{"as_int": 1}]}
        names = [f"c{i}" for i in range(1500)]
        graph(model)["tensor_values"].update({name: meta for name in names})
        graph(model)["nodes"].append({
            "target": "torch.ops.mine.many.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}],
            "outputs": [{"as_tensor": {"name": name}} for name in names], "metadata": {"stack_trace": trace},
            "is_hop_single_tensor_return": None, "name": "many"})

    files.model("long_stack_trace", "a node that Tenon lacks has 1500 results and a stack trace of 300 KB", long_trace, verb="operators")
    files.model("long_name", "a value has a name of 100000 letters",
                lambda m: json.loads(json.dumps(m).replace('"linear_1"', '"' + "n" * 100_000 + '"')))


def expressions(files):
    def sized(text, times=1):
        def change(model):
            meta = copy.deepcopy(graph(model)["tensor_values"]["input"])
            for i in range(times):
                meta["sizes"][0] = {"as_expr": {"expr_str": text.replace("#", str(i)), "hint": None}}
                graph(model)["tensor_values"][f"e{i}"] = copy.deepcopy(meta)
                graph(model)["nodes"].append(relu(f"e{i}", "input"))

        return change

    symbol = "Symbol('s31', positive=True, integer=True)"
    for name, function in (("abs", "Abs(Add(Integer(-#), "), ("max", "Max(Integer(3), Add(Integer(-#), "), ("mod", "Mod(Add(Integer(-#), ")):
        close = {"abs": "))", "max": ")))", "mod": "), Add(Integer(7), " + symbol + "))"}[name]
        close = close[:-1] if name == "max" else close
        files.model(f"tower_of_{name}", f"sizes are towers of 60 {name}", sized(function * 60 + symbol + close * 60),
                    verdict="bad" if name == "abs" else "good")
        files.model(f"many_towers_of_{name}", f"300 sizes are towers of 12 {name}", sized(function * 12 + symbol + close * 12, 300))
    files.model("power_of_sum", "a size is a sum to the power 60",
                sized("Pow(Add(" + ", ".join(f"Symbol('s{i}', positive=True, integer=True)" for i in range(60)) + "), Integer(60))"))
    files.model("wide_max", "a size that is the greatest of 3000 numbers is legal",
                sized("Max(" + ", ".join(f"Add(Integer({-i}), {symbol})" for i in range(3000)) + ")"), verdict="good")


def deflated(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=zipfile.ZIP_DEFLATED)
    return out.getvalue()


def bombs(files):
    def bomb(name, mistake, entry, data, verb="all", verdict="bad"):
        archive = files.base()
        archive.entries[entry] = data
        packed = deflated({f"{archive.root}/{name}": data for name, data in archive.entries.items()})
        assert len(packed) <= 1_100_000, (name, len(packed))
        files.raw(name, packed, mistake, verb, verdict)

    bomb("json_of_lists", "the program is 40 million empty lists", "models/model.json", b"[" + b"[]," * 40_000_000 + b"[]]")
    bomb("json_of_text", "the program is a string of 300 million letters", "models/model.json", b'"' + b"a" * 300_000_000 + b'"')
    bomb("extra_of_zeros", "an extra file is 300 million zeros", "extra/notes", bytes(300_000_000))

    def pickled(body):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02" + body)
        return out.getvalue()

    sample = "data/sample_inputs/model.pt"
    bomb("pickle_of_marks", "the sample inputs are 30 million marks", sample, pickled(b"(" * 30_000_000 + b"."), verb="run")
    bomb("pickle_of_nones", "the sample inputs are 30 million Nones", sample, pickled(b"(" + b"N" * 30_000_000 + b"t."), verb="run")
    bomb("pickle_of_tuples", "the sample inputs are 30 million tuples", sample, pickled(b"(" + b")" * 30_000_000 + b"t."), verb="run")


def claims(files):
    def regions(model, **said):
        for node in graph(model)["nodes"]:
            if node["target"].endswith("wrap_with_set_grad_enabled"):
                name = node["outputs"][0]["as_tensor"]["name"]
                graph(model)["tensor_values"][name].update(said)

    files.model("region_result_of_another_dtype", "a region is described as giving another dtype than its graph",
                lambda m: regions(m, dtype=8), base="l_no_grad_region")
    files.model("name_with_escape", "a value's name holds an escape sequence",
                lambda m: json.loads(json.dumps(m).replace('"linear_1"', '"linear\\u001b[31m"')))
    files.model("name_with_override", "a value's name turns the direction of writing",
                lambda m: json.loads(json.dumps(m).replace('"linear_1"', '"linear\\u202e"')))
