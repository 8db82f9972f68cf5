"""Mistakes of control flow: what a graph within the program takes and gives, and what it is given."""

import json

from bad_graphs import graph


def operator(model):
    return next(n for n in graph(model)["nodes"] if "higher_order" in n["target"])


def inner(model, which=0):
    graphs = [i["arg"]["as_graph"] for i in operator(model)["inputs"] if "as_graph" in i["arg"]]
    return graphs[which]["graph"]


def operands(model, which=0):
    return [i["arg"]["as_tensors"] for i in operator(model)["inputs"] if "as_tensors" in i["arg"]][which]


BASES = {"cond": "n_condition_that_holds", "loop": "n_loop", "map": "n_map_over_rows", "scan": "n_scan_of_a_cell",
         "sums": "n_associative_scan_of_sums"}


def make(files):
    def model(kind, name, mistake, change):
        # An associative scan is looked at when it is computed.
        files.model(f"{kind}_{name}", mistake, lambda m: change(m) and None, BASES[kind], "compute" if kind == "sums" else "all")

    for kind in BASES:
        model(kind, "too_few_operands", "an operand of the graphs is missing", lambda m: operands(m, -1 if operands(m, -1) else 0).pop())
        model(kind, "too_many_operands", "the graphs are given one operand more than they take",
              lambda m: operands(m).append(dict(operands(m)[0])))
        model(kind, "graph_takes_too_few", "a graph has an input less", lambda m: inner(m)["inputs"].pop())
        model(kind, "graph_gives_too_few", "a graph gives nothing back", lambda m: inner(m)["outputs"].clear())
        model(kind, "graph_gives_too_many", "a graph gives one value more",
              lambda m: inner(m, -1)["outputs"].append(dict(inner(m, -1)["outputs"][0])))
        model(kind, "graph_gives_a_number", "a graph gives a number in place of a tensor",
              lambda m: inner(m, -1)["outputs"].__setitem__(0, {"as_int": 3}))
        model(kind, "without_its_graph", "a graph is None in the file",
              lambda m: next(i for i in operator(m)["inputs"] if "as_graph" in i["arg"]).update(arg={"as_none": True}))
        model(kind, "graph_is_a_tensor", "a tensor stands for a graph",
              lambda m: next(i for i in operator(m)["inputs"] if "as_graph" in i["arg"]).update(arg={"as_tensor": dict(operands(m)[0])}))
        model(kind, "operands_are_graphs", "a graph stands for the operands",
              lambda m: next(i for i in operator(m)["inputs"] if "as_tensors" in i["arg"]).update(
                  arg={"as_graph": {"name": "g", "graph": json.loads(json.dumps(inner(m)))}}))
        model(kind, "operand_is_a_ghost", "an operand does not exist", lambda m: operands(m)[0].update(name="ghost"))
        model(kind, "results_too_many", "the node has one result more than its graphs give",
              lambda m: operator(m)["outputs"].append(dict(operator(m)["outputs"][0])))
        model(kind, "graph_of_another_dtype", "an input of a graph has another dtype than what it is given",
              lambda m: [v.update(dtype=3) for v in [inner(m)["tensor_values"][inner(m)["inputs"][0]["as_tensor"]["name"]]]])
        model(kind, "graph_of_another_rank", "an input of a graph has another rank than what it is given",
              lambda m: [(v["sizes"].append({"as_int": 5}), v["strides"].append({"as_int": 1}))
                         for v in [inner(m)["tensor_values"][inner(m)["inputs"][0]["as_tensor"]["name"]]]])
    model("cond", "on_a_float", "the condition is a float tensor of several elements",
          lambda m: operator(m)["inputs"][0].update(arg={"as_tensor": {"name": "x"}}))
    model("cond", "on_a_string", "the condition is text", lambda m: operator(m)["inputs"][0].update(arg={"as_string": "yes"}))
    model("cond", "branches_of_different_shapes", "the branches give tensors of different shapes",
          lambda m: inner(m, 1)["outputs"].reverse() or True)
    model("loop", "condition_gives_a_float", "the condition of a loop gives what it carries",
          lambda m: inner(m, 0)["outputs"].__setitem__(0, dict(inner(m, 0)["inputs"][1])))
    model("loop", "body_changes_a_shape", "the body of a loop gives its values in another order",
          lambda m: inner(m, 1)["outputs"].reverse() or True)
    model("scan", "body_changes_a_shape", "the body of a scan gives its values in another order",
          lambda m: operands(m, 0).__setitem__(0, dict(operands(m, 1)[0])) or True)

    def nested(model):
        """The JSON text of the program with 1000 conditions inside each other."""
        outer = operator(model)
        wrapped = {**inner(model), "nodes": [{**outer, "inputs": [
            outer["inputs"][0], {"name": "", "arg": {"as_graph": {"name": "g", "graph": "HERE"}}, "kind": 1}, *outer["inputs"][2:]]}]}
        before, after = json.dumps(wrapped).split('"HERE"')
        whole = before * 1000 + json.dumps(inner(model)) + after * 1000
        outer["inputs"][1]["arg"]["as_graph"]["graph"] = "WHOLE"
        return json.dumps(model).replace('"WHOLE"', whole)

    archive = files.base(BASES["cond"])
    archive.entries["models/model.json"] = nested(archive.model).encode()
    files.add("cond_nested_1000_times", archive, "conditions are nested 1000 times")
