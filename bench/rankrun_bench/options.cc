#include "bench/rankrun_bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

namespace rankrun::bench {
namespace {

constexpr int kUsageError = 2;

constexpr std::pair<const char*, Collective> kCollectives[] = {
    {"all_reduce", Collective::kAllReduce},
    {"all_gather", Collective::kAllGather},
    {"reduce_scatter", Collective::kReduceScatter},
    {"broadcast", Collective::kBroadcast},
    {"all_to_all", Collective::kAllToAll},
    {"send_recv", Collective::kSendRecv},
    {"barrier", Collective::kBarrier},
};

// PREMUL_SUM is left out: it has a factor on each rank.
constexpr std::pair<const char*, ReduceOp::Kind> kOps[] = {
    {"sum", ReduceOp::kSum},      {"avg", ReduceOp::kAvg},        {"product", ReduceOp::kProduct},
    {"min", ReduceOp::kMin},      {"max", ReduceOp::kMax},        {"bit_and", ReduceOp::kBitAnd},
    {"bit_or", ReduceOp::kBitOr}, {"bit_xor", ReduceOp::kBitXor},
};

template <typename Table>
auto MapOf(const Table& table) {
  std::map<std::string, decltype(table[0].second)> map;
  for (const auto& [name, value] : table) map.emplace(name, value);
  return map;
}

std::map<std::string, DType> DTypes() {
  std::map<std::string, DType> map;
  for (int number = 0; number < kDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    map.emplace(NameOf(dtype), dtype);
  }
  return map;
}

// A name of a table, said with all names of it in an error.
template <typename Value>
auto OneOf(std::string what, std::map<std::string, Value> map) {
  return [what = std::move(what), map = std::move(map)](const std::string& word) {
    if (const auto found = map.find(word); found != map.end()) return found->second;
    std::string names;
    for (const auto& [name, value] : map) names += (names.empty() ? "" : ", ") + name;
    throw CLI::ValidationError(what, "\"" + word + "\" is none of " + names);
  };
}

// As rankrun's own flags have them: not "1.5K", "8kb" or "-5".
std::size_t SizeIn(const char* what, const std::string& word) {
  const CLI::ValidationError wrong(what,
                                   "want a size, as 512, 8K, 64M, 1G or 2T, got \"" + word + "\"");
  int64_t number = 0;
  const char* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, number);
  const std::string unit(end, last);
  const std::size_t power = unit.empty() ? 0 : std::string(" KMGT").find(unit, 1);
  if (error != std::errc() || number < 0 || unit.size() > 1 || power == std::string::npos) {
    throw wrong;
  }
  if (number > std::numeric_limits<int64_t>::max() >> (10 * power)) throw wrong;
  return static_cast<std::size_t>(number) << (10 * power);
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}

bool CanReduce(DType dtype, ReduceOp::Kind op) {
  const bool bitwise = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
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

// What the library would refuse, before anything is printed.
void CheckReduction(const Options& options) {
  if (std::ranges::none_of(options.collectives, Reduces)) return;
  if (CanReduce(options.dtype, options.op)) return;
  std::string can;
  for (const auto& [name, op] : kOps) {
    if (CanReduce(options.dtype, op)) can += (can.empty() ? "" : ", ") + std::string(name);
  }
  const std::string dtype = NameOf(options.dtype);
  if (can.empty()) throw CLI::ValidationError("--dtype", dtype + " can be moved, not reduced");
  throw CLI::ValidationError("--op", std::string(NameOf(options.op)) + " does not go with " +
                                         dtype + ": want one of " + can);
}

struct Words {
  std::vector<std::string> collectives;
  std::string min_bytes = "8";
  std::string max_bytes = "256M";
  std::string dtype = "float32";
  std::string op = "sum";
  double time_limit = 10;
};

// Without what CLI11 says of its checks: the help texts say it.
template <typename T>
CLI::Validator Between(T least, T most) {
  return CLI::Range(least, most).description("");
}

void AddSizes(CLI::App& app, Options& options, Words& words) {
  app.add_option("--min-bytes", words.min_bytes, "Smallest size; 64K are 65536 bytes")
      ->type_name("SIZE")
      ->default_str(words.min_bytes);
  app.add_option("--max-bytes", words.max_bytes, "Largest size")
      ->type_name("SIZE")
      ->default_str(words.max_bytes);
  app.add_option("--factor", options.factor, "From one size to the next; at least 2")
      ->check(Between(std::size_t{2}, std::size_t{1} << 20))
      ->type_name("N")
      ->default_str("2");
}

void AddWhat(CLI::App& app, Options& options, Words& words) {
  app.add_option("--dtype", words.dtype, "Type of the elements")
      ->type_name("TYPE")
      ->default_str(words.dtype);
  app.add_option("--op", words.op, "Reduction of all_reduce and reduce_scatter")
      ->type_name("OP")
      ->default_str(words.op);
  app.add_option("--backend", options.backend, "shm, gloo, ...; unset: the library's choice")
      ->type_name("NAME");
}

void AddMeasuring(CLI::App& app, BatchPlan& plan, Words& words) {
  app.add_option("--warmup", plan.warmup_calls, "Calls before the first measured one")
      ->check(Between(0, 1'000'000))
      ->type_name("N")
      ->default_str("5");
  app.add_option("--iters", plan.calls, "Calls of a batch; 0: as many as take 20 ms")
      ->check(Between(int64_t{0}, int64_t{1'000'000'000}))
      ->type_name("N")
      ->default_str("0");
  app.add_option("--batches", plan.batches, "Batches, of which the median is printed")
      ->check(Between(1, 1'000'000))
      ->type_name("N")
      ->default_str("5");
  app.add_option("--time-limit", words.time_limit, "For a size: no batch begins after it")
      ->check(Between(0.0, 86400.0))
      ->type_name("SECONDS")
      ->default_str("10");
}

void AddFlags(CLI::App& app, Options& options, Words& words) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", "rankrun-bench " RANKRUN_VERSION, "Print the version and exit");
  app.add_option("COLLECTIVE", words.collectives,
                 "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv, "
                 "barrier, or all for all of them")
      ->required()
      ->type_name("");
  AddSizes(app, options, words);
  AddWhat(app, options, words);
  AddMeasuring(app, options.plan, words);
  app.add_flag("--json", options.json, "One JSON object per line instead of a table");
}

void Finish(const Words& words, Options& options) {
  const auto collective = OneOf("COLLECTIVE", MapOf(kCollectives));
  for (const std::string& word : words.collectives) {
    if (word != "all") {
      options.collectives.push_back(collective(word));
      continue;
    }
    for (const auto& [name, value] : kCollectives) options.collectives.push_back(value);
  }
  options.dtype = OneOf("--dtype", DTypes())(words.dtype);
  options.op = OneOf("--op", MapOf(kOps))(words.op);
  CheckReduction(options);
  options.plan.limit = Seconds(words.time_limit);
  options.min_bytes = SizeIn("--min-bytes", words.min_bytes);
  options.max_bytes = SizeIn("--max-bytes", words.max_bytes);
  if (options.min_bytes < 1 || options.min_bytes > options.max_bytes) {
    throw CLI::ValidationError("--min-bytes", "must be from 1 to that of --max-bytes");
  }
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
  Parsed parsed;
  Words words;
  CLI::App app(
      "Measures collectives and checks their results, as a worker:\n"
      "  rankrun -n 4 rankrun-bench all_reduce",
      "rankrun-bench");
  try {
    AddFlags(app, parsed.options, words);
    app.parse(argc, argv);
    Finish(words, parsed.options);
  } catch (const CLI::CallForHelp&) {
    parsed.exit_code = 0;
    parsed.text = app.help();
  } catch (const CLI::CallForVersion& version) {
    parsed.exit_code = 0;
    parsed.text = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = kUsageError;
    parsed.text = "rankrun-bench: " + std::string(error.what()) + "\n";
  }
  return parsed;
}

}  // namespace rankrun::bench
