// The command line: reads the arguments, calls a verb, turns errors into sentences and exit statuses.
#include <CLI/CLI.hpp>
#include <charconv>
#include <new>

#include "tenon/base/signals.h"
#include "tenon/ops/custom_ops.h"
#include "tools/tenon/files.h"
#include "tools/tenon/memory.h"
#include "tools/tenon/train_options.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

size_t output_number(std::string value) {
  std::string_view digits = value;
  if (starts_with(digits, "output_")) digits.remove_prefix(7);
  size_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    throw CLI::ValidationError("--of", text("expected output_N or N, got ", tenon::quoted(value)));
  return number;
}

/// Everything the options write to. Verbs are run after parsing, so that a usage error never leaves half a job done.
struct Requests {
  ShowRequest show;
  RunRequest run;
  GradRequest grad;
  ConvertRequest convert;
  DiffRequest diff;
  CompileRequest compile;
  BenchRequest bench;
  TrainRequest train;
  bool ops_json = false;
  std::vector<std::string> operators;  // shared libraries with operators of the user
  int64_t max_memory = 0;
};

// Which program of the file, and where it runs.
void add_open(CLI::App& verb, OpenOptions& open) {
  verb.add_option("--model", open.model, "Which program of a file that holds several; the one called model by default")
      ->type_name("NAME");
  verb.add_option_function<std::string>(
          "--device",
          [&open](const std::string& value) {
            if (value != "cpu")
              throw CLI::ValidationError("--device", text("expected cpu, got ", tenon::quoted(value)));
            open.move_to_cpu = true;
          },
          "cpu: put a program there that was exported on another device")
      ->type_name("DEVICE");
}

CLI::Option* add_of(CLI::App& verb, size_t& of) {
  return verb
      .add_option_function<std::string>(
          "--of", [&of](const std::string& value) { of = output_number(value); },
          "The output to differentiate: output_0 (the default), output_1, ...")
      ->type_name("OUTPUT");
}

CLI::Option* add_wrt(CLI::App& verb, Wrt& wrt) {
  return verb
      .add_option_function<std::string>(
          "--wrt", [&wrt](const std::string& value) { wrt = parse_wrt(value); },
          "What to differentiate by: parameters (the default), inputs, all, or names separated by commas")
      ->type_name("WHAT");
}

void add_memory_budget(CLI::App& verb, std::optional<double>& budget) {
  verb.add_option_function<double>(
          "--memory-budget", [&budget](double value) { budget = value; },
          "From 0 to 1: how much the backward keeps of the forward. 1 computes again what costs only reading, 0 keeps "
          "nothing but inputs; without it everything is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
}

void add_verbose(CLI::App& verb, bool& verbose) {
  verb.add_flag("-v,--verbose", verbose, "Print the passes that were run and their times to stderr");
}

void add_max_memory(CLI::App& verb, int64_t& limit) {
  verb.add_option_function<std::string>(
          "--max-memory", [&limit](const std::string& value) { limit = parse_memory(value); },
          "Stop where more memory than this would be needed, mapped weights aside: 2G, 512M or bytes")
      ->type_name("SIZE");
}

void add_operators(CLI::App& verb, std::vector<std::string>& files) {
  verb.add_option(
          "--ops", files,
          "A shared library with operators that the program calls (docs/custom_ops.md); it is code, and runs. May "
          "be given several times")
      ->type_name("LIBRARY");
}

void add_show(CLI::App& app, ShowRequest& request) {
  CLI::App* verb = app.add_subcommand("show", "Print a program, as PyTorch prints it or after a stage of the compiler");
  verb->add_option("FILE", request.file, "A .pt2 file, or one that tenon compile wrote")->required()->type_name("");
  verb->add_option_function<std::string>(
          "--after",
          [&request](const std::string& value) {
            auto stage = stage_named(value);
            if (!stage)
              throw CLI::ValidationError("--after", text("expected read, normalized, functional, joint, partition, "
                                                         "loops, folded, fused, packed or kernels, got ",
                                                         tenon::quoted(value)));
            request.after = *stage;
            request.stage = value;
          },
          "read (the default), normalized, functional, joint, partition, loops, folded, fused, packed or kernels")
      ->type_name("STAGE");
  add_open(*verb, request.open);
  add_of(*verb, request.walk.of);
  add_wrt(*verb, request.walk.wrt);
  add_memory_budget(*verb, request.walk.memory_budget);
  add_verbose(*verb, request.verbose);
  verb->add_flag("--json", request.json, "Print JSON");
  CLI::Option* tree = verb->add_flag(
      "--tree", request.tree, "Print the modules the program was exported from, with classes, parameters and sizes");
  tree->excludes("--json")->excludes("--after");
  verb->add_flag("--verify", request.verify, "Of a compiled program: compare everything in it with its checksums");
  verb->footer(
      "Example:\n  tenon show examples/digits/digits_cnn.pt2 --after=joint --wrt=all\n\n"
      "--of, --wrt and --memory-budget matter to joint and partition. Operators that Tenon lacks are listed on stderr "
      "(status 1).");
}

void add_run(CLI::App& app, RunRequest& request) {
  CLI::App* verb =
      app.add_subcommand("run", "Run a program: a .pt2 file in the interpreter, a compiled one by its code");
  verb->add_option("FILE", request.file, "A .pt2 file, or one that tenon compile wrote")->required()->type_name("");
  add_open(*verb, request.open);
  verb->add_option("--inputs", request.inputs,
                   "An .npz or .safetensors file of inputs, by name or as arr_0, arr_1, ...; without it the sample "
                   "inputs stored in FILE are used")
      ->type_name("NPZ");
  verb->add_option("--outputs", request.outputs,
                   "The .npz or .safetensors file to write results to; without it they are printed")
      ->type_name("NPZ");
  verb->add_option("--threads", request.threads, "How many threads to use; all of the machine's by default")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_verbose(*verb, request.verbose);
  verb->add_option("--seed", request.seed, "Seed of random operators; 0 by default")->type_name("N");
  verb->footer(
      "Example:\n  tenon run examples/digits/digits_cnn_eval.pt2 --outputs scores.npz\n\n"
      "Results are called output_0, output_1, ..., buffer.NAME and input.NAME (what the program wrote to) and\n"
      "grad.NAME (gradients of a file that tenon grad made). bfloat16 is read and written as float32.");
}

void add_grad(CLI::App& app, GradRequest& request) {
  CLI::App* verb = app.add_subcommand("grad", "Write the program that also computes gradients");
  verb->add_option("FILE", request.file, "A .pt2 file")->required()->type_name("");
  verb->add_option("-o,--output", request.out, "The .pt2 file to write")->required()->type_name("OUT");
  add_open(*verb, request.open);
  verb->add_option_function<std::string>(
          "--of",
          [&request](const std::string& value) {
            if (starts_with(value, "grad.")) request.of_gradient = value.substr(5);
            else request.walk.of = output_number(value);
          },
          "The output to differentiate: output_0 (the default), output_1, ...; of a file that tenon grad made also "
          "grad.NAME")
      ->type_name("OUTPUT");
  add_wrt(*verb, request.walk.wrt);
  add_memory_budget(*verb, request.walk.memory_budget);
  add_verbose(*verb, request.verbose);
  verb->footer(
      "Example:\n  tenon grad examples/digits/digits_cnn.pt2 -o joint.pt2 --wrt=all\n  tenon run joint.pt2\n\n"
      "Where the output is no scalar, its cotangent becomes the input tangent_output_N, which is ones where it is left "
      "out. Inputs that share memory share it as the stored sample inputs do. Of a file that tenon grad made, the "
      "gradients become outputs behind the others, and --of grad.NAME gives second gradients.");
}

void add_convert(CLI::App& app, ConvertRequest& request) {
  CLI::App* verb = app.add_subcommand("convert", "Write a program as PyTorch 2.15 writes it");
  verb->add_option("IN", request.file, "A .pt2 file of PyTorch 2.4 or later")->required()->type_name("");
  verb->add_option("OUT", request.out, "The .pt2 file to write")->required()->type_name("");
  add_open(*verb, request.open);
  verb->add_option_function<std::string>(
          "--mode",
          [&request](const std::string& value) {
            if (value == "eval") request.mode = Mode::eval;
            else if (value == "train") request.mode = Mode::train;
            else throw CLI::ValidationError("--mode", text("expected eval or train, got ", tenon::quoted(value)));
          },
          "eval or train: the program as model.eval() or model.train() would have been exported")
      ->type_name("MODE");
  verb->add_option_function<std::string>(
          "--dialect",
          [&request](const std::string& value) {
            request.dialect = dialect_named(value);
            if (!request.dialect)
              throw CLI::ValidationError("--dialect",
                                         text("expected training, aten or core, got ", tenon::quoted(value)));
          },
          "aten: without writes, as PyTorch's run_decompositions({}); core: of core ATen operators, as "
          "run_decompositions(); training: as exported")
      ->type_name("DIALECT");
  verb->add_option_function<std::string>(
          "--keep",
          [&request](const std::string& value) {
            for (const std::string& name : split(value, ',')) request.keep.emplace_back(trim(name));
          },
          "Operators that --dialect leaves as they are, separated by commas: linear,conv2d")
      ->type_name("OP,OP")
      ->needs("--dialect");
  verb->footer(
      "Example:\n  tenon convert old.pt2 new.pt2\n  tenon convert examples/digits/digits_cnn.pt2 eval.pt2 --mode "
      "eval\n  tenon convert model.pt2 core.pt2 --dialect core --keep linear,conv2d\n\nSample inputs that cannot be "
      "read are left out, with a warning.");
}

void add_diff(CLI::App& app, DiffRequest& request) {
  CLI::App* verb = app.add_subcommand("diff", "Say in what two programs differ: graph, signature, state");
  verb->add_option("A", request.first, "A .pt2 file")->required()->type_name("");
  verb->add_option("B", request.second, "Another one")->required()->type_name("");
  add_open(*verb, request.open);
  verb->footer(
      "Example:\n  tenon diff before.pt2 after.pt2\n\n"
      "Lines with - are of A, with + of B. Exit status, as of diff: 0 they are equal, 1 they differ, 2 trouble.\n"
      "Stack traces and other comments are not compared; state is compared bit by bit.");
}

void add_compile(CLI::App& app, CompileRequest& request) {
  CLI::App* verb = app.add_subcommand("compile", "Write a program as a shared library that needs only the C library");
  verb->add_option("FILE", request.file, "A .pt2 file")->required()->type_name("");
  verb->add_option("-o,--output", request.out, "The shared library to write")->type_name("OUT");
  verb->add_option("--emit-source", request.source,
                   "Also write the program as C, tables and weights to a folder; one command builds it")
      ->type_name("DIR");
  verb->add_option_function<std::string>(
          "--backend",
          [&request](const std::string& value) {
            if (value != "native" && value != "c")
              throw CLI::ValidationError("--backend", text("expected native or c, got ", tenon::quoted(value)));
            request.with_c = value == "c";
          },
          "native (the default): machine code by Tenon itself; c: by the system's C compiler")
      ->type_name("BACKEND");
  add_open(*verb, request.open);
  verb->add_option_function<std::string>(
          "--target",
          [&request](const std::string& value) {
            auto target = value == "native" ? artifact::native_target() : artifact::target_named(value);
            if (value == "native" && !target)
              throw CLI::ValidationError("--target", "this machine has no AVX2; name x86-64-v3 or x86-64-v4");
            if (!target)
              throw CLI::ValidationError("--target",
                                         text("expected native, x86-64-v3 or x86-64-v4, got ", tenon::quoted(value)));
            request.targets = {*target};
          },
          "native, x86-64-v3 (AVX2) or x86-64-v4 (AVX-512); code for both by default, the better is taken at load")
      ->type_name("TARGET");
  verb->add_flag("--tune", request.tune,
                 "Measure on this machine how each convolution is computed best, and write the choice: results of two "
                 "such files may differ in their last bits, runs of one never; -v says what was measured");
  verb->add_option_function<std::string>(
          "--weights",
          [&request](const std::string& value) {
            if (value != "f16" && value != "bf16" && value != "f32")
              throw CLI::ValidationError("--weights", text("expected f32, f16 or bf16, got ", tenon::quoted(value)));
            if (value != "f32") request.weights = value == "f16" ? DType::f16 : DType::bf16;
          },
          "f32 (the default), or f16 or bf16: keep the weights of linear layers and other products rounded to that, in "
          "half the memory; computed in f32 as before")
      ->type_name("DTYPE");
  verb->add_flag("--updatable", request.updatable,
                 "Keep weights as they are, so that they can be set, saved and loaded by name");
  verb->add_flag("!--no-samples", request.samples, "Leave the sample inputs out");
  add_verbose(*verb, request.verbose);
  verb->footer(
      "Example:\n  tenon compile examples/digits/digits_cnn_eval.pt2 -o digits.so\n  tenon run digits.so\n\n"
      "No compiler is needed. Call the result from C or C++ through <tenon/runtime.h>; load only files you would also "
      "execute.");
}

void add_bench(CLI::App& app, BenchRequest& request) {
  CLI::App* verb = app.add_subcommand("bench", "Measure how fast a program runs, kernel by kernel");
  verb->add_option("FILE", request.file, "A .pt2 file, or one that tenon compile wrote")->required()->type_name("");
  add_open(*verb, request.open);
  verb->add_option("--inputs", request.inputs, "Inputs as for tenon run; the stored samples by default")
      ->type_name("NPZ");
  verb->add_option("--threads", request.threads, "How many threads to use; all of the machine's by default")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  verb->add_option("--seconds", request.seconds, "How long to measure; 2 by default")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("S");
  verb->add_flag("--huge-pages", request.huge_pages,
                 "Copy the weights of a compiled program into huge pages first; for programs that read many of them");
  verb->add_flag("--json", request.json, "Print one JSON object and nothing else");
  verb->footer("Example:\n  tenon bench digits.so --threads 1");
}

struct CommandLine {
  CLI::App app{"PyTorch programs without PyTorch: reads, runs, differentiates, trains, compiles and writes .pt2 files",
               "tenon"};
  Requests requests;

  CommandLine() {
    app.set_version_flag("--version", std::string("tenon ") + TENON_VERSION);
    app.require_subcommand(1);
    add_show(app, requests.show);
    add_run(app, requests.run);
    add_grad(app, requests.grad);
    add_convert(app, requests.convert);
    add_diff(app, requests.diff);
    add_open(add_train(app, requests.train), requests.train.open);
    add_compile(app, requests.compile);
    add_bench(app, requests.bench);
    CLI::App* ops = app.add_subcommand("ops", "List every operator and the rules it has");
    ops->add_flag("--json", requests.ops_json, "Print JSON");
    ops->footer("Example:\n  tenon ops | grep aten::conv");
    for (const char* name : {"show", "run", "grad", "convert", "diff", "train", "compile", "bench"})
      add_max_memory(*app.get_subcommand(name), requests.max_memory);
    for (const char* name : {"show", "run", "grad", "convert", "train", "compile", "bench", "ops"})
      add_operators(*app.get_subcommand(name), requests.operators);
    app.add_subcommand("doctor", "Say what Tenon finds on this machine")->footer("Example:\n  tenon doctor");
    app.footer("tenon VERB --help explains a verb. Exit status: 0, 1 (bad input or program), 2 (usage).");
  }

  std::string verb() const { return app.get_subcommands().empty() ? "" : app.get_subcommands()[0]->get_name(); }

  int run_verb() const {
    std::string name = verb();
    if (name == "show") return show_file(requests.show);
    if (name == "run") return run_file(requests.run);
    if (name == "grad") return grad_file(requests.grad);
    if (name == "convert") return convert_file(requests.convert);
    if (name == "diff") return diff_files(requests.diff);
    if (name == "compile") return compile_file(requests.compile);
    if (name == "bench") return bench_file(requests.bench);
    if (name == "train") return train_file(requests.train);
    if (name == "ops") return list_ops(requests.ops_json);
    if (name == "doctor") return doctor();
    unreachable();
  }
};

int run_caught(const CommandLine& line) {
  try {
    if (line.requests.max_memory > 0) limit_memory(line.requests.max_memory);
    for (const std::string& file : line.requests.operators) load_custom_operators(file);
    int status = line.run_verb();
    flush_output();
    return status;
  } catch (const Error& error) { complain(error.what()); } catch (const InternalError& error) {
    complain(error.what());  // it says "internal error" and asks to report it
  } catch (const std::bad_alloc&) {
    int64_t limit = memory_limit();
    limit_memory(0);  // the sentence itself needs some
    if (limit > 0)
      complain(text(line.verb(), ": the program needs more memory than the ", limit, " bytes of --max-memory"));
    else complain(text(line.verb(), ": the machine does not have the memory that this program asks for"));
  } catch (const std::exception& error) { complain(text("internal error: ", error.what(), "; please report it")); }
  return line.verb() == "diff" ? 2 : bad_input;  // as diff: 1 says that they differ
}

int main(int argc, char** argv) {
  install_signal_handlers();
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help, --version
    return line.app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::string verb = line.verb();
    std::string what = error.what();
    if (verb.empty() && (argc < 2 || argv[1][0] != '-'))
      what = text("expected a verb: show, run, grad, convert, diff, train, compile, bench, ops or doctor",
                  argc < 2 ? std::string() : text(", got ", quoted(argv[1])));
    complain(text(verb.empty() ? "" : verb + ": ", what, "; see tenon ", verb.empty() ? "" : verb + " ", "--help"));
    return usage;
  } catch (const Error& error) {  // from the text of an option
    complain(error.what());
    return usage;
  }
  return run_caught(line);
}

}  // namespace
}  // namespace tenon::tool

int main(int argc, char** argv) { return tenon::tool::main(argc, argv); }
