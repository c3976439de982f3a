#include "launcher/flags.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace rankrun::launcher {
namespace {

constexpr Flag kFlags[] = {
    {"nproc-per-node", 'n', FlagValue::kCount, 1, 10'000, "N", "1", true,
     "Workers to start on this node."},
    {"max-restarts", 0, FlagValue::kCount, 0, 1'000'000, "N", "0", true,
     "How often all workers are started again after one has failed."},
    {"standalone", 0, FlagValue::kNone, 0, 0, "", "", true,
     "One node that needs no other and no fixed port: what rankrun does anyway."},
    {"master-addr", 0, FlagValue::kText, 0, 0, "ADDRESS", "127.0.0.1", true,
     "MASTER_ADDR of the workers; the store listens there besides loopback."},
    {"master-port", 0, FlagValue::kPort, 0, 0, "PORT", "a free one per attempt", true,
     "MASTER_PORT of the workers, kept over restarts."},
    {"no-python", 0, FlagValue::kNone, 0, 0, "", "", true,
     "Execute the program itself, whatever its name."},
    {"module", 'm', FlagValue::kNone, 0, 0, "", "", true,
     "The program is a Python module, as with python -m."},
    {"shutdown-timeout", 0, FlagValue::kSeconds, 0, 0, "SECONDS", "25", true,
     "From the signal that asks a worker to end to SIGKILL."},
    {"version", 0, FlagValue::kNone, 0, 0, "", "", false, "Print the version and exit."},
    {"help", 'h', FlagValue::kNone, 0, 0, "", "", true, "Print this text and exit."},
};

// Flags of torchrun that this version does not have: known, so that a typo
// hint does not mislead.
constexpr std::string_view kOnlyTorchrun[] = {"nnodes",
                                              "rdzv-backend",
                                              "rdzv-endpoint",
                                              "rdzv-id",
                                              "rdzv-conf",
                                              "monitor-interval",
                                              "start-method",
                                              "event-log-handler",
                                              "role",
                                              "run-path",
                                              "log-dir",
                                              "redirects",
                                              "tee",
                                              "node-rank",
                                              "local-ranks-filter",
                                              "local-addr",
                                              "logs-specs",
                                              "duplicate-stdout-filters",
                                              "numa-binding",
                                              "signals-to-handle",
                                              "duplicate-stderr-filters",
                                              "virtual-local-rank"};

// How many single-character edits lead from one word to the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

Error UnknownFlag(std::string_view name) {
  std::string text = "unknown flag --" + std::string(name);
  if (std::ranges::find(kOnlyTorchrun, name) != std::end(kOnlyTorchrun)) {
    return {ErrorCode::kInvalid,
            "--" + std::string(name) + ": this flag of torchrun is not supported yet"};
  }
  // What it begins is nearer than what it resembles.
  auto distance = [&](const Flag& flag) {
    bool begins = !name.empty() && flag.name.starts_with(name);
    return begins ? 0 : EditDistance(name, flag.name);
  };
  const Flag& nearest = *std::ranges::min_element(kFlags, {}, distance);
  if (distance(nearest) <= std::max<size_t>(2, name.size() / 3)) {
    return {ErrorCode::kInvalid, text + "; did you mean --" + std::string(nearest.name) + "?"};
  }
  return {ErrorCode::kInvalid, text + "; rankrun --help lists all"};
}

const Flag* ByName(std::string_view name) {
  auto found = std::ranges::find(kFlags, name, &Flag::name);
  return found == std::end(kFlags) ? nullptr : found;
}

const Flag* ByLetter(char letter) {
  auto found = std::ranges::find(kFlags, letter, &Flag::letter);
  return found == std::end(kFlags) || letter == 0 ? nullptr : found;
}

std::string Canonical(const Flag& flag) { return "--" + std::string(flag.name); }

// Walks over the arguments before the program.
class Splitter {
 public:
  explicit Splitter(std::span<const std::string> arguments) : left_(arguments) {}

  Result<SplitArguments> Split() {
    bool swallowed = false;
    while (!left_.empty() && left_[0].size() > 1 && left_[0][0] == '-') {
      std::string argument = Take();
      if (argument == "--") {
        swallowed = true;
        break;
      }
      auto taken = argument[1] == '-' ? TakeLong(argument.substr(2)) : TakeLetters(argument);
      if (!taken) return std::move(taken).error();
    }
    result_.program.assign(left_.begin(), left_.end());
    if (!swallowed && result_.program.size() > 1 && result_.program[1] == "--") {
      result_.program.erase(result_.program.begin() + 1);
    }
    return std::move(result_);
  }

 private:
  std::string Take() {
    std::string first = left_[0];
    left_ = left_.subspan(1);
    return first;
  }

  // `attached` is what stood after "=" or after the letter.
  Result<void> Add(const Flag& flag, std::optional<std::string> attached) {
    if (flag.value == FlagValue::kNone) {
      if (attached) {
        return Error{ErrorCode::kInvalid,
                     Canonical(flag) + " takes no value, got \"" + *attached + "\""};
      }
      result_.flags.push_back(Canonical(flag));
      return {};
    }
    if (!attached && !left_.empty() && !left_[0].starts_with("--")) attached = Take();
    if (!attached || attached->empty()) {
      return Error{ErrorCode::kInvalid,
                   Canonical(flag) + " needs a value (" + std::string(flag.value_name) + ")"};
    }
    result_.flags.push_back(Canonical(flag) + "=" + *attached);
    return {};
  }

  Result<void> TakeLong(const std::string& text) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::ranges::replace(name, '_', '-');
    const Flag* flag = ByName(name);
    if (flag == nullptr) return UnknownFlag(name);
    if (equals == std::string::npos) return Add(*flag, std::nullopt);
    return Add(*flag, text.substr(equals + 1));
  }

  // "-n4", "-n=4", "-m", "-mn4".
  Result<void> TakeLetters(const std::string& cluster) {
    for (size_t i = 1; i < cluster.size(); ++i) {
      const Flag* flag = ByLetter(cluster[i]);
      if (flag == nullptr) {
        return Error{ErrorCode::kInvalid, std::string("unknown flag -") + cluster[i] + " in \"" +
                                              cluster + "\"; rankrun --help lists all"};
      }
      if (flag->value == FlagValue::kNone) {
        if (auto added = Add(*flag, std::nullopt); !added) return added;
        continue;
      }
      if (i + 1 == cluster.size()) return Add(*flag, std::nullopt);
      std::string rest = cluster.substr(i + 1);
      if (rest.starts_with('=')) rest.erase(0, 1);
      return Add(*flag, rest);
    }
    return {};
  }

  std::span<const std::string> left_;
  SplitArguments result_;
};

}  // namespace

std::span<const Flag> Flags() { return kFlags; }

Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments) {
  return Splitter(arguments).Split();
}

}  // namespace rankrun::launcher
