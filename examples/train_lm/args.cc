#include "args.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

namespace {

std::string CheckPositive(const std::string& text) {
  int64_t value = 0;
  bool positive = CLI::detail::lexical_cast(text, value) && value >= 1;
  return positive ? "" : "want a whole number >= 1, not " + text;
}

const CLI::Validator kPositive(CheckPositive, "");

void Describe(CLI::App& app, Args& args) {
  app.option_defaults()->always_capture_default();
  app.add_option("--data", args.data, "file with the bytes to learn")->check(CLI::ExistingFile);
  app.add_option("--steps", args.steps, "optimiser steps")->check(kPositive);
  app.add_option("--batch", args.batch, "samples per step, over all workers")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--hidden", args.hidden, "units of the hidden layer")->check(CLI::Range(1, 4096));
  app.add_option("--seed", args.seed, "seed of the initial weights and the samples");
  app.add_option("--checkpoint", args.checkpoint,
                 "file to save to, and to resume from if it exists");
  app.add_option("--checkpoint-every", args.checkpoint_every, "steps between two saves")
      ->check(kPositive);
  app.add_option("--pace", args.pace, "minimum duration of a step in milliseconds")
      ->check(CLI::Range(0, 60'000));
  app.option_defaults()->always_capture_default(false);
  auto* die_rank = app.add_option("--die-rank", args.die_rank,
                                  "worker that kills itself, in the first attempt only")
                       ->check(CLI::Range(0, 1 << 20));
  auto* die_at =
      app.add_option("--die-at", args.die_at, "step at which it kills itself")->check(kPositive);
  die_rank->needs(die_at);
  die_at->needs(die_rank);
}

}  // namespace

Args ParseArgs(int argc, char** argv) {
  Args args;
  CLI::App app("Trains a small language model on the bytes of a file, on all workers of the job.",
               "train_lm");
  Describe(app, args);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    std::cerr << "train_lm: " << error.what() << " (see --help)\n";
    std::exit(2);
  }
  return args;
}
