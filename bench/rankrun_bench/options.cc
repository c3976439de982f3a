#include "bench/rankrun_bench/options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "bench/rankrun_bench/flags.h"
#include "bench/rankrun_bench/tune.h"
#include "launcher/flags/flag_parser.h"
#include "launcher/flags/help.h"

namespace rankrun::bench {
namespace {

constexpr int kUsageError = 2;
constexpr const char* kUsage = "[flags] COLLECTIVE...";

constexpr std::pair<const char*, Collective> kCollectives[] = {
    {"all_reduce", Collective::kAllReduce},
    {"all_gather", Collective::kAllGather},
    {"reduce_scatter", Collective::kReduceScatter},
    {"broadcast", Collective::kBroadcast},
    {"all_to_all", Collective::kAllToAll},
    {"send_recv", Collective::kSendRecv},
    {"barrier", Collective::kBarrier},
};

// PREMUL_SUM is left out, because it has a factor on each rank.
constexpr std::pair<const char*, ReduceOp::Kind> kOps[] = {
    {"sum", ReduceOp::kSum},      {"avg", ReduceOp::kAvg},        {"product", ReduceOp::kProduct},
    {"min", ReduceOp::kMin},      {"max", ReduceOp::kMax},        {"bit_and", ReduceOp::kBitAnd},
    {"bit_or", ReduceOp::kBitOr}, {"bit_xor", ReduceOp::kBitXor},
};

constexpr size_t kTunedBytes = size_t{8} << 20;  // largest size of --tune

// The operand, described as a flag to check its value.
constexpr launcher::Flag kCollective{
    .value = launcher::FlagValue::kChoice,
    .choices = "all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|send_recv|barrier|all"};

Error Invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}

bool CanReduce(DType dtype, ReduceOp::Kind op) {
  bool bitwise = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return !bitwise;
    case DType::kBool:
      return op != ReduceOp::kAvg;
    case DType::kComplex64:
    case DType::kComplex128:
      return op == ReduceOp::kSum || op == ReduceOp::kAvg;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return false;
    default:
      return true;
  }
}

// Refuses a reduction early if the library would refuse it.
Result<void> CheckReduction(const Options& options) {
  if (std::ranges::none_of(options.collectives, Reduces)) return {};
  if (CanReduce(options.dtype, options.op)) return {};
  std::string can;
  for (const auto& [name, op] : kOps) {
    if (CanReduce(options.dtype, op)) can += (can.empty() ? "" : ", ") + std::string(name);
  }
  std::string dtype = NameOf(options.dtype);
  if (can.empty()) return Invalid("--dtype: " + dtype + " cannot be reduced");
  return Invalid("--op: " + std::string(NameOf(options.op)) + " does not support " + dtype +
                 ": want one of " + can);
}

Result<std::vector<Collective>> CollectivesOf(const std::vector<std::string>& words) {
  if (words.empty())
    return Invalid(std::string("no collective given; usage: rankrun-bench ") + kUsage);
  std::vector<Collective> collectives;
  for (const std::string& word : words) {
    std::string wrong = launcher::WrongValue(kCollective, word);
    if (!wrong.empty()) return Invalid("COLLECTIVE: " + wrong);
    for (const auto& [name, collective] : kCollectives) {
      if (word == "all" || word == name) collectives.push_back(collective);
    }
  }
  return collectives;
}

// nccl-tests' names.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"half", "float16"}, {"float", "float32"}, {"double", "float64"}, {"prod", "product"}};

std::string OurNameOf(const std::string& name) {
  const auto* other =
      std::ranges::find(kOtherNames, name, [](const auto& names) { return names.first; });
  return other != std::end(kOtherNames) ? other->second : name;
}

DType DTypeOf(const std::string& name) {
  for (int number = 0; number < kDTypes; ++number) {
    if (name == NameOf(static_cast<DType>(number))) return static_cast<DType>(number);
  }
  RANKRUN_CHECK(false, "the table of flags has a type that the library does not have");
}

ReduceOp::Kind OpOf(const std::string& name) {
  const auto* found = std::ranges::find(kOps, name, [](const auto& op) { return op.first; });
  RANKRUN_CHECK(found != std::end(kOps), "the table of flags has an operation without a kind");
  return found->second;
}

BatchPlan PlanOf(const launcher::ParsedFlags& flags) {
  BatchPlan plan;
  plan.warmup_calls = flags.Count("warmup").value_or(plan.warmup_calls);
  if (auto calls = flags.Count("iters")) plan.calls = *calls;
  plan.batches = flags.Count("batches").value_or(plan.batches);
  if (auto limit = flags.Seconds("time-limit")) plan.limit = *limit;
  return plan;
}

// Keeps the collectives with several algorithms. One that was asked for by name
// must have them.
Result<void> PrepareTuning(const launcher::Arguments& arguments, Options& options) {
  if (!options.backend.empty() && options.backend != "tcp") {
    return Invalid("--tune: only tcp has a table of algorithms: want no --backend, or tcp");
  }
  auto has_none = [](Collective collective) { return !HasAlgorithms(collective); };
  for (Collective collective : options.collectives) {
    const std::string name = NameOf(collective);
    if (has_none(collective) && std::ranges::count(arguments.positionals, name) > 0) {
      return Invalid("--tune: " + name +
                     " has one algorithm: want all_reduce, all_gather, "
                     "broadcast, all_to_all or all");
    }
  }
  std::erase_if(options.collectives, has_none);
  if (!arguments.flags.Has("max-bytes")) options.max_bytes = kTunedBytes;
  return {};
}

Result<Options> OptionsOf(const launcher::Arguments& arguments) {
  const launcher::ParsedFlags& flags = arguments.flags;
  auto collectives = CollectivesOf(arguments.positionals);
  if (!collectives) return std::move(collectives).error();
  Options options;
  options.collectives = std::move(*collectives);
  options.plan = PlanOf(flags);
  options.min_bytes = flags.Size("min-bytes").value_or(options.min_bytes);
  options.max_bytes = flags.Size("max-bytes").value_or(options.max_bytes);
  options.backend = flags.Text("backend").value_or("");
  options.tune = flags.Has("tune");
  if (options.tune) {
    if (auto ok = PrepareTuning(arguments, options); !ok) return std::move(ok).error();
  }
  if (options.min_bytes > options.max_bytes) {
    return Invalid("--min-bytes: want at most the value of --max-bytes");
  }
  if (auto factor = flags.Count("factor")) options.factor = static_cast<size_t>(*factor);
  if (auto dtype = flags.Text("dtype")) options.dtype = DTypeOf(OurNameOf(*dtype));
  if (auto op = flags.Text("op")) options.op = OpOf(OurNameOf(*op));
  options.root = flags.Count("root").value_or(options.root);
  options.json = flags.Has("json");
  if (auto checked = CheckReduction(options); !checked) return std::move(checked).error();
  return options;
}

Parsed Refused(const Error& error) {
  return {
      .options = {}, .exit_code = kUsageError, .text = "rankrun-bench: " + error.message + "\n"};
}

Parsed Printed(std::string text) {
  return {.options = {}, .exit_code = 0, .text = std::move(text)};
}

std::string HelpText() {
  return launcher::FormatHelp(BenchFlags(), kUsage,
                              "Measures collectives and checks their results, as a worker:\n"
                              "  rankrun -n 4 rankrun-bench all_reduce\n"
                              "\n"
                              "Collectives: all_reduce, all_gather, reduce_scatter, broadcast, "
                              "all_to_all, send_recv,\n"
                              "barrier, or all for all of them.");
}

template <typename Table, typename Value>
const char* NameIn(const Table& table, Value wanted) {
  for (const auto& [name, value] : table) {
    if (value == wanted) return name;
  }
  return "";
}

}  // namespace

const char* NameOf(Collective collective) { return NameIn(kCollectives, collective); }
const char* NameOf(ReduceOp::Kind op) { return NameIn(kOps, op); }

Parsed ParseOptions(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  auto arguments = launcher::ParseArguments(BenchFlags(), launcher::FlagsEnd::kNowhere, words);
  if (!arguments) return Refused(arguments.error());
  if (arguments->flags.Has("help")) return Printed(HelpText());
  if (arguments->flags.Has("version")) return Printed("rankrun-bench " RANKRUN_VERSION "\n");
  auto options = OptionsOf(*arguments);
  if (!options) return Refused(options.error());
  return {.options = std::move(*options), .exit_code = {}, .text = {}};
}

}  // namespace rankrun::bench
