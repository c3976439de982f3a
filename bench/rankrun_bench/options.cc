#include "bench/rankrun_bench/options.h"

#include <CLI/CLI.hpp>
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

struct Words {
  std::vector<std::string> collectives;
  std::string dtype = "float32";
  std::string op = "sum";
  double time_limit = 10;
};

// Without what CLI11 says of its checks: the help texts say it.
CLI::Validator SizeInBytes() { return CLI::AsSizeValue(false).description(""); }
template <typename T>
CLI::Validator Between(T least, T most) {
  return CLI::Range(least, most).description("");
}

void AddSizes(CLI::App& app, Options& options) {
  app.add_option("--min-bytes", options.min_bytes, "Smallest size; 64K are 65536 bytes")
      ->transform(SizeInBytes())
      ->type_name("SIZE")
      ->default_str("8");
  app.add_option("--max-bytes", options.max_bytes, "Largest size")
      ->transform(SizeInBytes())
      ->type_name("SIZE")
      ->default_str("256M");
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
  app.add_option("COLLECTIVE", words.collectives,
                 "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv, "
                 "barrier, or all for all of them")
      ->required()
      ->type_name("");
  AddSizes(app, options);
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
  options.plan.limit = Seconds(words.time_limit);
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
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = kUsageError;
    parsed.text = "rankrun-bench: " + std::string(error.what()) + "\n";
  }
  return parsed;
}

}  // namespace rankrun::bench
