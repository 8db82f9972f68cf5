"""Mistakes of the program: versions, fields, values, nodes, signature, trees, symbols."""

import copy
import json


def graph(model):
    return model["graph_module"]["graph"]


def signature(model):
    return model["graph_module"]["signature"]


def node(model, index=0):
    return graph(model)["nodes"][index]


def entry(model):
    return model["graph_module"]["module_call_graph"][0]["signature"]


def put(path, value):
    """A change that replaces what stands at a path of keys."""

    def change(model):
        at = model
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


def drop(path):
    def change(model):
        at = model
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


def make(files):
    versions(files)
    fields(files)
    values(files)
    nodes(files)
    signatures(files)
    trees(files)
    symbols(files)
    regions(files)


def versions(files):
    files.model("schema_major_9", "the schema's major version is newer", put(["schema_version", "major"], 9))
    files.model("schema_major_3", "the schema's major version is older than PyTorch 2.4", put(["schema_version", "major"], 3))
    files.model("schema_major_negative", "the schema's major version is negative", put(["schema_version", "major"], -8))
    files.model("schema_version_text", "the schema's version is text", put(["schema_version"], "8.20"))
    files.model("schema_version_missing", "the schema's version is missing", drop(["schema_version"]))

    def newer(model):
        model["schema_version"]["minor"] = 99
        model["brand_new"] = {"anything": [1, 2, {"x": None}]}
        graph(model)["brand_new_too"] = "text"
        node(model)["one_more"] = 5
        graph(model)["tensor_values"]["linear"]["colour"] = "blue"

    files.model("schema_minor_99_with_unknown_fields", "a newer minor version with unknown fields is legal", newer, verdict="good")
    files.model("verifier_unknown", "the dialect is unknown", put(["verifiers"], ["SOMETHING"]))
    files.model("verifiers_missing", "verifiers may be missing", drop(["verifiers"]), verdict="good")
    files.model("guards_missing", "guards_code may be missing", drop(["guards_code"]), verdict="good")
    files.model("guards_hostile", "a guard tries to run code", put(["guards_code"], ["__import__('os').system('true')"]))
    files.model("guards_false", "a guard never holds", put(["guards_code"], ["False"]), verb="run")
    files.model("guards_not_text", "a guard is a number", put(["guards_code"], [5]))


def fields(files):
    for path in (["graph_module"], ["graph_module", "graph"], ["graph_module", "signature"], ["graph_module", "module_call_graph"],
                 ["graph_module", "graph", "nodes"], ["graph_module", "graph", "inputs"], ["graph_module", "graph", "outputs"],
                 ["graph_module", "graph", "tensor_values"], ["graph_module", "signature", "input_specs"],
                 ["graph_module", "signature", "output_specs"], ["range_constraints"]):
        files.model(f"field_missing_{path[-1]}", f"{'.'.join(path)} is missing", drop(path),
                    verdict="good" if path == ["range_constraints"] else "bad")
    for path, value in ((["graph_module"], []), (["graph_module", "graph"], "text"), (["graph_module", "graph", "nodes"], {}),
                        (["graph_module", "graph", "inputs"], None), (["graph_module", "graph", "tensor_values"], []),
                        (["graph_module", "signature"], 5), (["graph_module", "module_call_graph"], {}),
                        (["range_constraints"], []), (["graph_module", "graph", "nodes", 0], 7),
                        (["graph_module", "graph", "nodes", 0, "target"], 7), (["graph_module", "graph", "nodes", 0, "inputs"], {}),
                        (["graph_module", "graph", "nodes", 0, "outputs"], "x"),
                        (["graph_module", "graph", "nodes", 0, "inputs", 0, "name"], None),
                        (["graph_module", "graph", "nodes", 0, "inputs", 0, "arg"], []),
                        (["graph_module", "graph", "nodes", 0, "metadata"], 3),
                        (["graph_module", "graph", "inputs", 0], "p_0_weight"),
                        (["graph_module", "graph", "tensor_values", "linear", "sizes"], 5),
                        (["graph_module", "graph", "tensor_values", "linear", "dtype"], "float"),
                        (["graph_module", "graph", "tensor_values", "linear", "requires_grad"], "yes"),
                        (["graph_module", "graph", "tensor_values", "linear", "device"], "cpu"),
                        (["graph_module", "graph", "is_single_tensor_return"], "no")):
        name = "_".join(str(key) for key in path if key not in ("graph_module", "graph") or path[-1] == key)
        files.model(f"field_type_{name}", f"{'.'.join(map(str, path))} has a wrong type", put(path, value))


def values(files):
    at = ["graph_module", "graph", "tensor_values", "linear"]
    for code in (0, 14, 27, 99, -1):
        files.model(f"dtype_code_{code}".replace("-", "minus_"), f"dtype code {code} means nothing", put([*at, "dtype"], code))
    files.model("dtype_complex", "complex tensors of halves are not supported", put([*at, "dtype"], 9), verb="compute")
    files.model("layout_sparse", "sparse tensors are not supported", put([*at, "layout"], 1), verb="compute")
    files.model("layout_unknown", "layout code 55 means nothing", put([*at, "layout"], 55))
    files.model("device_cuda", "CUDA is not supported", put([*at, "device"], {"type": "cuda", "index": 0}),
                verb="compute")
    files.model("size_negative", "a size is negative", put([*at, "sizes", 1], {"as_int": -9}))
    files.model("sizes_overflow", "the number of elements does not fit",
                put([*at, "sizes"], [{"as_int": 2**40}, {"as_int": 2**40}]))
    files.model("strides_of_another_rank", "there are more strides than sizes",
                put([*at, "strides"], [{"as_int": 9}, {"as_int": 1}, {"as_int": 1}]))
    files.model("offset_negative", "a storage offset is negative", put([*at, "storage_offset"], {"as_int": -4}))
    files.model("rank_1000", "a tensor has 1000 dimensions",
                lambda m: graph(m)["tensor_values"]["linear"].update(sizes=[{"as_int": 1}] * 1000, strides=[{"as_int": 1}] * 1000))
    files.model("size_union_of_two", "a size is two things at once", put([*at, "sizes", 1], {"as_int": 9, "as_expr": {}}))
    files.model("size_union_empty", "a size is nothing", put([*at, "sizes", 1], {}))
    files.model("size_union_unknown", "a size is of an unknown kind", put([*at, "sizes", 1], {"as_dream": 9}))
    files.model("meta_of_node_wrong", "the stored size of a result is not what the operator gives",
                put([*at, "sizes", 1], {"as_int": 8}))
    files.model("meta_missing", "a result has no metadata", drop(at))
    files.model("meta_of_nothing", "there is metadata of a value that does not exist",
                lambda m: graph(m)["tensor_values"].update(ghost=copy.deepcopy(graph(m)["tensor_values"]["linear"])))
    weight = ["graph_module", "graph", "tensor_values", "p_0_weight"]
    files.model("placeholder_size_disagrees", "a parameter's placeholder has another size than its payload",
                put([*weight, "sizes", 0], {"as_int": 10}))
    files.model("placeholder_dtype_disagrees", "a parameter's placeholder has another dtype than its payload",
                put([*weight, "dtype"], 8))
    files.model("placeholder_rank_disagrees", "a parameter's placeholder has another rank than its payload",
                put([*weight, "sizes"], [{"as_int": 63}]))


def nodes(files):
    def argument(index, **value):
        return put(["graph_module", "graph", "nodes", 0, "inputs", index, "arg"], value)

    files.model("use_of_undefined", "a node uses a value that does not exist", argument(0, as_tensor={"name": "ghost"}))
    files.model("use_before_definition", "a node uses a value that a later node defines",
                argument(0, as_tensor={"name": "linear_1"}))
    files.model("use_of_itself", "a node uses its own result", argument(0, as_tensor={"name": "linear"}))

    def twice(model):
        graph(model)["nodes"].insert(1, copy.deepcopy(node(model)))

    files.model("redefinition", "two nodes define the same value", twice)
    files.model("redefinition_of_input", "a node defines a value that is an input",
                put(["graph_module", "graph", "nodes", 0, "outputs", 0, "as_tensor", "name"], "input"))
    files.model("argument_unknown", "a node gives an argument that the schema lacks",
                put(["graph_module", "graph", "nodes", 0, "inputs", 2, "name"], "colour"))
    files.model("argument_twice", "a node gives an argument twice",
                put(["graph_module", "graph", "nodes", 0, "inputs", 2, "name"], "weight"))
    files.model("argument_missing", "a node lacks a required argument",
                drop(["graph_module", "graph", "nodes", 0, "inputs", 1]))
    files.model("argument_int_for_tensor", "an integer stands where a tensor must", argument(1, as_int=3))
    files.model("argument_text_for_tensor", "text stands where a tensor must", argument(1, as_string="weight"))
    files.model("argument_none_for_tensor", "none stands where a tensor must", argument(1, as_none=True))
    files.model("argument_list_for_tensor", "a list stands where a tensor must",
                argument(1, as_tensors=[{"name": "p_0_weight"}]))
    files.model("argument_none_for_optional", "none is legal for an optional argument", argument(2, as_none=True), verdict="good")
    files.model("argument_custom_object", "an argument is a custom object",
                argument(2, as_custom_obj={"name": "object", "class_fqn": "a.B"}))
    files.model("argument_graph_for_operator", "a graph stands where a tensor must",
                argument(1, as_graph={"name": "g", "graph": {}}))
    files.model("argument_union_of_two", "an argument is two things at once",
                argument(1, as_tensor={"name": "p_0_weight"}, as_int=3))
    files.model("argument_union_unknown", "an argument is of an unknown kind", argument(1, as_dream=3))
    files.model("outputs_too_many", "a node has more results than the operator",
                lambda m: node(m)["outputs"].append({"as_tensor": {"name": "linear_1"}}))
    files.model("outputs_too_few", "a node has fewer results than the operator",
                lambda m: node(m).update(outputs=[]))
    files.model("output_of_wrong_kind", "a tensor result is declared as an integer",
                lambda m: node(m).update(outputs=[{"as_sym_int": {"as_name": "linear"}}]))
    for name, target, what, verb in (
            ("unknown", "torch.ops.aten.frobnicate.default", "an operator that does not exist", "operators"),
            ("unknown_overload", "torch.ops.aten.linear.sideways", "an overload that does not exist", "operators"),
            ("custom", "torch.ops.mine.thing.default", "a custom operator", "operators"),
            ("empty", "", "nothing", "all"), ("python", "os.system", "a Python function", "all"),
            ("no_overload", "torch.ops.aten.linear", "an operator without overload", "all"),
            ("dots", "torch.ops....", "only dots", "all"),
            ("cond", "torch.ops.higher_order.cond", "torch.cond without graphs", "all")):
        files.model(f"target_{name}", f"a node calls {what}", put(["graph_module", "graph", "nodes", 0, "target"], target), verb=verb)
    files.model("target_long", "an operator's name has 200000 letters",
                put(["graph_module", "graph", "nodes", 0, "target"], "torch.ops.aten." + "a" * 200_000 + ".default"))
    files.model("dtypes_that_do_not_match", "a node multiplies a f32 by an i64 matrix",
                put(["graph_module", "graph", "tensor_values", "input", "dtype"], 5))
    files.model("shapes_that_do_not_match", "a node multiplies matrices that do not fit",
                argument(1, as_tensor={"name": "p_2_weight"}))


    def ends_in(target, *inputs):
        """The last node becomes a call of another operator on what comes before it; its result is described likewise."""
        def change(model):
            before = node(model, -2)["outputs"][0]
            args = [before, *inputs]
            node(model, -1).update(target=target, inputs=[{"name": "", "arg": arg, "kind": 1} for arg in args])
            metas = graph(model)["tensor_values"]
            metas[node(model, -1)["outputs"][0]["as_tensor"]["name"]] = copy.deepcopy(metas[before["as_tensor"]["name"]])

        return change

    made = "torch._functorch.predispatch."
    files.model("batch_that_does_not_end", "a sample of a batch is used as if it were the batch",
                ends_in(f"{made}_add_batch_dim", {"as_int": 0}, {"as_int": 1}), verb="compute")
    files.model("direction_of_nothing", "a tensor moves in no direction",
                ends_in(f"{made}_make_dual", {"as_none": True}, {"as_int": 0}), verb="compute")


def signatures(files):
    specs = ["graph_module", "signature", "input_specs"]
    files.model("inputs_more_than_specs", "the graph has more inputs than the signature", drop([*specs, 0]))
    files.model("specs_more_than_inputs", "the signature has more inputs than the graph",
                drop(["graph_module", "graph", "inputs", 0]))
    files.model("spec_of_another_name", "a spec names another value than the graph's input",
                put([*specs, 0, "parameter", "arg", "name"], "p_0_bias"))
    files.model("spec_unknown_kind", "an input spec is of an unknown kind",
                put([*specs, 0], {"wish": {"arg": {"name": "p_0_weight"}}}))
    files.model("spec_custom_object", "an input is a custom object",
                put([*specs, 0], {"custom_obj": {"arg": {"name": "p_0_weight", "class_fqn": "a.B"}, "custom_obj_name": "x"}}))
    files.model("parameter_without_weight", "a parameter is not among the weights",
                put([*specs, 0, "parameter", "parameter_name"], "9.weight"))
    files.model("input_twice", "an input occurs twice",
                lambda m: (graph(m)["inputs"].append(graph(m)["inputs"][-1]), signature(m)["input_specs"].append(
                    signature(m)["input_specs"][-1])) and None)
    outputs = ["graph_module", "signature", "output_specs"]
    files.model("outputs_more_than_specs", "the graph has more outputs than the signature", put(outputs, []))
    files.model("output_undefined", "the graph returns a value that does not exist",
                lambda m: (put(["graph_module", "graph", "outputs", 0, "as_tensor", "name"], "ghost")(m),
                           put([*outputs, 0, "user_output", "arg", "as_tensor", "name"], "ghost")(m)) and None)
    files.model("output_spec_of_another_name", "an output spec names another value than the graph's output",
                put([*outputs, 0, "user_output", "arg", "as_tensor", "name"], "linear"))
    files.model("output_mutates_unknown_buffer", "an output updates a buffer that does not exist",
                put([*outputs, 0], {"buffer_mutation": {"arg": {"name": "linear_2"}, "buffer_name": "ghost"}}))
    files.model("output_spec_unknown_kind", "an output spec is of an unknown kind", put([*outputs, 0], {"wish": {}}))
    files.model("buffer_without_persistence", "a buffer does not say whether it is persistent",
                lambda m: next(s for s in signature(m)["input_specs"] if "buffer" in s)["buffer"].pop("persistent") and None,
                base="i_statistics")
    files.model("buffer_persistence_wrong", "a persistent buffer is said to be none",
                lambda m: next(s for s in signature(m)["input_specs"] if "buffer" in s)["buffer"].update(persistent=False),
                base="i_statistics")
    files.model("constant_input_of_another_value", "signature and graph disagree about a constant input",
                lambda m: next(s for s in signature(m)["input_specs"] if "constant_input" in s and "as_int" in
                               s["constant_input"]["value"])["constant_input"]["value"].update(as_int=77), base="j_constants")


def trees(files):
    def spec(**changes):
        def change(model):
            entry(model).update({name: text if isinstance(text, str) else json.dumps(text) for name, text in changes.items()})

        return change

    leaf = {"type": None, "context": None, "children_spec": []}

    def branch(kind, children, context="null"):
        return {"type": kind, "context": context, "children_spec": children}

    def inputs(*leaves):
        return [1, branch("builtins.tuple", [branch("builtins.tuple", list(leaves)), branch("builtins.dict", [], "[]")])]

    files.model("tree_not_json", "the input tree is not JSON", spec(in_spec="tuple(leaf)"))
    files.model("tree_empty", "the input tree is empty", spec(in_spec=""))
    files.model("tree_version_9", "the input tree is of a newer version", spec(in_spec=[9, inputs(leaf)[1]]))
    files.model("tree_too_many_leaves", "the input tree has two leaves, the program one input", spec(in_spec=inputs(leaf, leaf)))
    files.model("tree_too_few_leaves", "the input tree has no leaf, the program one input", spec(in_spec=inputs()))
    files.model("tree_not_args_and_kwargs", "the input tree is not (args, kwargs)", spec(in_spec=[1, leaf]))
    # PyTorch reads it where such a class is registered; Tenon needs the leaves only.
    files.model("tree_registered_type", "a node of a class that a user registered is legal",
                spec(out_spec=[1, branch("mine.Thing", [leaf])]), verdict="good")
    files.model("tree_type_no_name", "the output tree has a type that is not a name",
                spec(out_spec=[1, branch("mine.Thing()", [leaf])]))
    files.model("tree_hostile_type", "the output tree names a Python function as its type",
                spec(out_spec=[1, branch("os.system", [leaf], '"true"')]))
    files.model("tree_output_leaves", "the output tree has two leaves, the program one output",
                spec(out_spec=[1, branch("builtins.tuple", [leaf, leaf])]))
    files.model("tree_dict_keys", "a dictionary has fewer keys than children",
                spec(out_spec=[1, branch("builtins.dict", [leaf], "[]")]))
    files.model("tree_dict_repeated_key", "a dictionary has a key twice",
                lambda m: spec(out_spec=[1, branch("builtins.dict", [leaf, leaf], '["a", "a"]')])(m))
    files.model("tree_dict_context", "a dictionary's keys are not JSON",
                spec(out_spec=[1, branch("builtins.dict", [leaf], "[a")]))
    files.model("tree_deep", "the output tree is nested 100000 times",
                spec(out_spec='[1, ' + '{"type": "builtins.list", "context": "null", "children_spec": [' * 100_000 +
                     json.dumps(leaf) + "]}" * 100_000 + "]"))
    files.model("tree_of_list", "an output in a list is legal", spec(out_spec=[1, branch("builtins.list", [leaf])]), verdict="good")
    files.model("calls_empty", "the module call graph is empty", put(["graph_module", "module_call_graph"], []))
    files.model("calls_first_named", "the first module call is not of the program itself",
                put(["graph_module", "module_call_graph", 0, "fqn"], "sub"))
    files.model("calls_without_signature", "the program itself has no call signature",
                put(["graph_module", "module_call_graph", 0, "signature"], None))


def symbols(files):
    at = ["graph_module", "graph", "tensor_values", "input", "sizes", 0, "as_expr", "expr_str"]

    def expression(name, text, mistake, verdict="bad"):
        def change(model):
            old = graph(model)["tensor_values"]["input"]["sizes"][0]["as_expr"]["expr_str"]
            return json.loads(json.dumps(model).replace(json.dumps(old), json.dumps(text))) if verdict == "good" \
                else put(at, text)(model)

        files.model(f"expression_{name}", mistake, change, verdict=verdict)

    expression("empty", "", "a symbolic size is empty")
    expression("import", "__import__('os').system('true')", "a symbolic size tries to run code")
    expression("lambda", "(lambda: 1)()", "a symbolic size is a Python function")
    expression("attribute", "Symbol('s31').__class__", "a symbolic size reads an attribute")
    expression("unknown_function", "Frobnicate(Symbol('s31'))", "a symbolic size calls an unknown function")
    expression("unclosed", "Add(Symbol('s31', positive=True, integer=True), Integer(1)", "a symbolic size lacks a parenthesis")
    expression("unclosed_text", "Symbol('s31", "a symbolic size lacks a quote")
    expression("deep", "Add(" * 100_000 + "Integer(1)" + ", Integer(1))" * 100_000, "a symbolic size is nested 100000 times")
    expression("deep_parentheses", "(" * 100_000 + "s31" + ")" * 100_000, "a symbolic size has 100000 parentheses")
    expression("huge_integer", "Integer(" + "9" * 500 + ")", "a symbolic size has 500 digits")
    expression("division_by_zero", "FloorDiv(Symbol('s31', positive=True, integer=True), Integer(0))", "a size is divided by zero")
    expression("overflow", "Mul(Integer(9223372036854775807), Symbol('s31', positive=True, integer=True))", "a size overflows")
    expression("float", "Float('1.5', precision=53)", "a size is not whole")
    expression("boolean", "true", "a size is a truth value")
    expression("unknown_symbol", "Mul(Integer(2), Symbol('s99', positive=True, integer=True))", "a symbol has no range")
    expression("symbol_that_may_be_a_fraction", "Symbol('s31')", "a size is a symbol that is not said to be an integer")
    expression("two_arguments", "Symbol('s31', 's32')", "a symbol has two names")
    expression("trailing", "Symbol('s31', positive=True, integer=True) + ", "a symbolic size ends in an operator")
    expression("power_tower", "Pow(Pow(Integer(9), Integer(99)), Integer(99))", "a symbolic size is astronomically large")
    files.model("symbol_told_by_nobody", "a size that other tensors have is that of no input",
                put(at, "Symbol('s99', positive=True, integer=True)"), verb="execute")
    files.model("symbol_without_range", "a size of an input without a range is legal", put(["range_constraints"], {}), verdict="good")
    files.model("range_empty", "a range's minimum is greater than its maximum",
                put(["range_constraints", "s31"], {"min_val": 9, "max_val": 3}))
    files.model("range_text", "a range's minimum is text", put(["range_constraints", "s31"], {"min_val": "0", "max_val": None}))
    files.model("range_list", "a range is a list", put(["range_constraints", "s31"], [0, 5]))
    files.model("range_excludes_hint", "a range leaves out the size that the program was made with",
                put(["range_constraints", "s31"], {"min_val": 100, "max_val": 200}))
    files.model("range_of_unused_symbol", "a range of a symbol that is not used is legal",
                lambda m: m["range_constraints"].update(s77={"min_val": 0, "max_val": 5}), verdict="good")
    files.model("hint_text", "a hint is text",
                put(["graph_module", "graph", "tensor_values", "input", "sizes", 0, "as_expr", "hint"], {"as_int": "four"}))


def regions(files):
    def region(model):
        return next(n for n in graph(model)["nodes"] if "set_grad" in n["target"])

    def inner(model):
        return region(model)["inputs"][1]["arg"]["as_graph"]["graph"]

    base = "l_no_grad_region"
    files.model("region_without_flag", "a set-grad region lacks its flag", lambda m: region(m)["inputs"].pop(0) and None, base)
    files.model("region_flag_number", "a set-grad region's flag is a number",
                lambda m: region(m)["inputs"][0].update(arg={"as_int": 0}), base)
    files.model("region_without_graph", "a set-grad region has no graph",
                lambda m: region(m)["inputs"][1].update(arg={"as_none": True}), base)
    files.model("region_too_few_operands", "a region gets fewer values than its graph has inputs",
                lambda m: region(m)["inputs"].pop() and None, base)
    files.model("region_too_few_results", "a region gives fewer values than its graph returns",
                lambda m: region(m)["outputs"].pop() and None, base)
    files.model("region_uses_outer_value", "a region's graph uses a value of the outer graph",
                lambda m: inner(m)["nodes"][0]["inputs"][0].update(arg={"as_tensor": {"name": "x"}}), base)
    files.model("region_returns_undefined", "a region's graph returns a value that does not exist",
                lambda m: inner(m)["outputs"].__setitem__(0, {"as_tensor": {"name": "ghost"}}), base)
    files.model("region_operand_of_another_shape", "a region gets a value of another shape than its graph's input",
                lambda m: region(m)["inputs"][2].update(arg={"as_tensor": {"name": "p_b_bias"}}), base)

    def nested(model):
        """The JSON text of the program with 1000 regions inside each other."""
        outer = region(model)
        wrapped = {**inner(model), "nodes": [{**outer, "inputs": [
            outer["inputs"][0], {"name": "", "arg": {"as_graph": {"name": "g", "graph": "HERE"}}, "kind": 1},
            *outer["inputs"][2:]]}]}
        before, after = json.dumps(wrapped).split('"HERE"')
        whole = before * 1000 + json.dumps(inner(model)) + after * 1000
        outer["inputs"][1]["arg"]["as_graph"]["graph"] = "WHOLE"
        return json.dumps(model).replace('"WHOLE"', whole)

    archive = files.base(base)
    archive.entries["models/model.json"] = nested(archive.model).encode()
    files.add("region_nested_1000_times", archive, "set-grad regions are nested 1000 times")

