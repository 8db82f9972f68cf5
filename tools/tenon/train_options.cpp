#include "tools/tenon/train_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "tenon/train/settings.h"

namespace tenon::tool {
namespace {

train::ParameterGroup parse_group(const std::string& value) {
  train::Settings settings("--group", value);
  train::ParameterGroup group{.pattern = settings.name(), .lr = {}, .weight_decay = {}};
  if (settings.has("lr")) group.lr = settings.positive("lr", 0);
  if (settings.has("weight_decay")) group.weight_decay = settings.positive("weight_decay", 0);
  require(group.lr || group.weight_decay, "--group: expected PATTERN,lr=X,weight_decay=Y, got ", tenon::quoted(value));
  settings.done();
  return group;
}

// CLI11's own says how large a double can be.
CLI::Validator above_zero() {
  auto wrong = [](const std::string& text) -> std::string {
    char* end = nullptr;
    bool good = std::strtod(text.c_str(), &end) > 0 && *end == 0;
    return good ? "" : "expected a number above 0, got " + tenon::quoted(text);
  };
  return {wrong, ""};
}

}  // namespace

CLI::App& add_train(CLI::App& app, TrainRequest& request) {
  CLI::App* verb = app.add_subcommand("train", "Train a program on arrays of samples");
  train::TrainerOptions& o = request.options;
  verb->add_option("MODEL", request.file, "A .pt2 file, exported in either mode")->required()->type_name("");
  verb->add_option("-o,--output", request.out, "The .pt2 file to write, in the mode that MODEL has")
      ->required()
      ->type_name("TRAINED");
  verb->add_option(
          "--data", request.data,
          "An .npz or .safetensors file: an array for each input, by name or as arr_0, arr_1, ..., and target; "
          "a row for each sample")
      ->required()
      ->type_name("FILE");
  verb->add_option("--eval", request.held_out, "A file like it with held-out samples, to evaluate on after each epoch")
      ->type_name("FILE");
  verb->add_option("--loss", o.loss,
                   "cross_entropy[,label_smoothing=X,ignore_index=N] (the default), mse, bce_with_logits, or none "
                   "where output_0 is the loss itself")
      ->type_name("LOSS");
  verb->add_option("--optimizer", o.optimizer,
                   "sgd, adam, adamw (the default), rmsprop or adagrad, with PyTorch's keywords and defaults: "
                   "sgd,lr=0.1,momentum=0.9")
      ->type_name("OPTIMIZER");
  verb->add_option("--epochs", o.epochs, "How often to go through the samples; 1 by default")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->type_name("N");
  verb->add_option("--batch", o.batch,
                   "Samples at a time; by default what MODEL was exported for, or 64 where it takes any number")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->type_name("N");
  verb->add_option("--seed", o.seed, "Of the order of samples and of random operators; 0 by default")->type_name("N");
  verb->add_option("--schedule", o.schedule,
                   "How the learning rate changes: cosine, linear, step, multistep, exponential or onecycle, with "
                   "PyTorch's keywords, warmup=N and per=epoch")
      ->type_name("SCHEDULE");
  verb->add_option("--clip-norm", o.clip_norm, "The largest norm of all gradients together")
      ->check(above_zero())
      ->type_name("X");
  verb->add_option("--clip-value", o.clip_value, "The largest element of a gradient")
      ->check(above_zero())
      ->type_name("X");
  verb->add_option("--precision", o.precision,
                   "full (the default), or bf16: products in bf16, parameters and the optimizer in f32")
      ->check(CLI::IsMember({"full", "bf16"}))
      ->type_name("full|bf16");
  verb->add_option_function<double>(
          "--memory-budget", [&o](double value) { o.memory_budget = value; },
          "From 0 to 1: how much the backward keeps of the forward; without it everything is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
  verb->add_option("--accumulate", o.accumulate, "Batches to an update, whose gradients are averaged; 1 by default")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->type_name("N");
  verb->add_option("--freeze", o.frozen, "Parameters that stay as they are: names, with * and ?; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  verb->add_option_function<std::vector<std::string>>(
          "--no-decay",
          [&o](const std::vector<std::string>& patterns) {
            for (const std::string& p : patterns) o.groups.push_back({.pattern = p, .lr = {}, .weight_decay = 0});
          },
          "Parameters without weight decay, as --group PATTERN,weight_decay=0; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  verb->add_option_function<std::vector<std::string>>(
          "--group",
          [&o](const std::vector<std::string>& groups) {
            for (const std::string& g : groups) o.groups.push_back(parse_group(g));
          },
          "PATTERN,lr=X,weight_decay=Y: a learning rate and a weight decay of their own; may be repeated, the first "
          "that matches counts")
      ->allow_extra_args(false)
      ->type_name("GROUP");
  verb->add_option("--resume", request.resume, "Go on from a state that was saved: TRAINED.state.safetensors")
      ->type_name("STATE");
  verb->add_option_function<std::string>(
          "--save-every", [&request](const std::string& value) { request.save_every = parse_duration(value); },
          "Save the state so often too, not only after each epoch: 90s, 5m, 1h")
      ->type_name("TIME");
  verb->add_option("--threads", request.threads, "How many threads to use; all of the machine's by default")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  verb->add_option("--step", request.step,
                   "Also write the step, with the state at the end, as a shared library that learns from C")
      ->type_name("OUT");
  verb->add_flag("--interpret", request.interpret, "Run in the interpreter, not as machine code");
  verb->add_flag("--json", request.json, "Print a line of JSON for each epoch");
  verb->footer(
      "Example:\n  tenon train examples/digits/digits_cnn.pt2 --data examples/digits/train.npz --eval "
      "examples/digits/test.npz\n    --optimizer sgd,lr=0.05,momentum=0.9 --epochs 5 --batch 64 -o trained.pt2\n\n"
      "MODEL is trained in training mode and evaluated in evaluation mode. The state (parameters, buffers, optimizer,\n"
      "position, random draws) is saved beside TRAINED.pt2 as TRAINED.state.safetensors, after each epoch, every\n"
      "--save-every and on Ctrl-C; resuming gives the same bits as not having stopped. See docs/training.md.");
  return *verb;
}

}  // namespace tenon::tool
