#include "comm/world/environment.h"

#include <limits>
#include <string_view>
#include <vector>

#include "base/net/host_port.h"
#include "base/parse_number.h"
#include "comm/world/mpi_launcher.h"

namespace rankrun::comm {
namespace {

struct Whole {
  const char* name;
  int min;
  int max = std::numeric_limits<int>::max();
  bool is_of_launcher = true;  // rankrun and torchrun set it
};

std::string Wanted(const Whole& number) {
  std::string text = "want a whole number ";
  if (number.max == std::numeric_limits<int>::max()) {
    text += ">= " + std::to_string(number.min);
  } else {
    text += std::to_string(number.min) + ".." + std::to_string(number.max);
  }
  return number.is_of_launcher ? text + " (set by rankrun or torchrun)" : text;
}

// An empty string counts as unset, as in torch.distributed.
std::optional<std::string> Value(const GetVariable& get, const char* name) {
  const char* value = get(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<std::optional<int>> OptionalNumber(const GetVariable& get, const Whole& number) {
  std::optional<std::string> text = Value(get, number.name);
  if (!text) return std::optional<int>();
  auto value = ParseNumber<int>(*text);
  if (!value || *value < number.min || *value > number.max) {
    return Error{ErrorCode::kInvalid,
                 std::string(number.name) + " is \"" + *text + "\": " + Wanted(number)};
  }
  return value;
}

Result<int> Number(const GetVariable& get, const Whole& number) {
  Result<std::optional<int>> value = OptionalNumber(get, number);
  if (!value) return std::move(value).error();
  if (*value) return **value;
  return Error{ErrorCode::kInvalid, std::string(number.name) + " is not set: " + Wanted(number)};
}

Result<int> GivenOr(const GetVariable& get, const std::optional<int>& given, const Whole& number) {
  if (given) return *given;
  return Number(get, number);
}

Result<void> ReadPlace(const GetVariable& get, const Given& given, Environment& environment) {
  Result<int> world_size = GivenOr(get, given.world_size, {.name = "WORLD_SIZE", .min = 1});
  if (!world_size) return std::move(world_size).error();
  Result<int> global_rank = GivenOr(get, given.global_rank, {.name = "RANK", .min = 0});
  if (!global_rank) return std::move(global_rank).error();
  if (*global_rank >= *world_size) {
    return Error{ErrorCode::kInvalid, std::string(given.global_rank ? "rank" : "RANK") + " is " +
                                          std::to_string(*global_rank) + ": want less than " +
                                          (given.world_size ? "world_size" : "WORLD_SIZE") +
                                          ", which is " + std::to_string(*world_size)};
  }
  environment.global_rank = *global_rank;
  environment.world_size = *world_size;
  return {};
}

Result<void> ReadSlowCall(const GetVariable& get, Environment& environment) {
  auto slow_call =
      OptionalNumber(get, {.name = "RANKRUN_SLOW_CALL_MS", .min = 0, .is_of_launcher = false});
  if (!slow_call) return std::move(slow_call).error();
  if (*slow_call) environment.slow_call = std::chrono::milliseconds(**slow_call);
  return {};
}

Result<void> ReadAlgorithms(const GetVariable& get, Environment& environment) {
  auto table = ParseAlgorithms(Value(get, "RANKRUN_ALGORITHMS").value_or(""));
  if (!table) return std::move(table).error().In("RANKRUN_ALGORITHMS");
  environment.algorithms = *table;
  return {};
}

Result<bool> ReadStrict(const GetVariable& get) {
  std::string value = Value(get, "RANKRUN_STRICT").value_or("0");
  if (value == "0" || value == "1") return value == "1";
  return Error{ErrorCode::kInvalid, "RANKRUN_STRICT is \"" + value + "\": want 0 or 1"};
}

// Fails if several variables are not set, which are named together. The reader
// of a single one says more of it.
Result<void> CheckPresence(const GetVariable& get, const Given& given) {
  std::vector<std::string> missing;
  auto need = [&](bool is_given, const char* name) {
    if (!is_given && !Value(get, name)) missing.emplace_back(name);
  };
  need(given.global_rank.has_value(), "RANK");
  need(given.world_size.has_value(), "WORLD_SIZE");
  const size_t of_place = missing.size();
  need(given.address, "MASTER_ADDR");
  need(given.address, "MASTER_PORT");
  if (missing.size() < 2) return {};
  std::string names = missing[0];
  for (size_t i = 1; i < missing.size(); ++i) {
    names += (i + 1 < missing.size() ? ", " : " and ") + missing[i];
  }
  const char* wanted = of_place > 0
                           ? "want a start by rankrun or torchrun, or by mpirun or srun with "
                             "MASTER_ADDR and MASTER_PORT"
                           : "want the host of rank 0, and a port that is free there";
  return Error{ErrorCode::kInvalid, names + " are not set: " + wanted};
}

Result<void> ReadStore(const GetVariable& get, Environment& environment) {
  std::optional<std::string> host = Value(get, "MASTER_ADDR");
  if (!host) {
    return Error{ErrorCode::kInvalid,
                 "MASTER_ADDR is not set: want the host of the store (set by rankrun or torchrun)"};
  }
  Result<int> port = Number(get, {.name = "MASTER_PORT", .min = 1, .max = 65535});
  if (!port) return std::move(port).error();
  auto parsed = ParseHost(*host);
  if (!parsed) return std::move(parsed).error().In("MASTER_ADDR");
  environment.master_addr = *parsed;
  environment.master_port = static_cast<uint16_t>(*port);
  return {};
}

}  // namespace

std::string PlaceOf(const Environment& environment) {
  return ", rank " + std::to_string(environment.global_rank) + " of " +
         std::to_string(environment.world_size);
}

Result<Environment> ReadEnvironment(const GetVariable& get_variable, const Given& given) {
  const GetVariable get = WithMpiLauncher(get_variable);
  Environment environment;
  if (auto ok = CheckPresence(get, given); !ok) return std::move(ok).error();
  if (auto ok = ReadPlace(get, given, environment); !ok) return std::move(ok).error();
  if (!given.address) {
    if (auto ok = ReadStore(get, environment); !ok) return std::move(ok).error();
  }
  auto local_world_size = OptionalNumber(get, {.name = "LOCAL_WORLD_SIZE", .min = 1});
  if (!local_world_size) return std::move(local_world_size).error();
  auto attempt = OptionalNumber(get, {.name = "TORCHELASTIC_RESTART_COUNT", .min = 0});
  if (!attempt) return std::move(attempt).error();
  if (auto ok = ReadSlowCall(get, environment); !ok) return std::move(ok).error();
  if (auto ok = ReadAlgorithms(get, environment); !ok) return std::move(ok).error();
  Result<bool> is_strict = ReadStrict(get);
  if (!is_strict) return is_strict.error();
  environment.agent_serves = Value(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  // The launcher counts the ranks of its job, not those of a part of it.
  bool is_of_job =
      !given.world_size || Value(get, "WORLD_SIZE") == std::to_string(*given.world_size);
  if (is_of_job) environment.local_world_size = *local_world_size;
  environment.attempt = attempt->value_or(0);
  environment.network_interface = Value(get, "GLOO_SOCKET_IFNAME").value_or("");
  environment.backend = Value(get, "RANKRUN_BACKEND").value_or("");
  environment.is_strict = *is_strict;
  return environment;
}

Result<int> LocalRankIn(const GetVariable& get, int fallback) {
  const Whole whole{.name = "LOCAL_RANK", .min = 0};
  const GetVariable with_mpi = WithMpiLauncher(get);
  if (fallback >= 0 && !Value(with_mpi, whole.name)) return fallback;
  return Number(with_mpi, whole);
}

std::string ListenHost(const Environment& environment, const std::string& store_connection_host) {
  if (environment.local_world_size == environment.world_size) return "127.0.0.1";
  return store_connection_host;
}

}  // namespace rankrun::comm
