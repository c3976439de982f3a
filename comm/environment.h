#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace rankrun::comm {

// What the launcher told this worker, as far as it did. A value.
struct Environment {
  int global_rank = 0;
  int world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  bool agent_serves = false;  // the store at that address
  std::optional<int> local_world_size;
  int attempt = 0;
  std::string network_interface;  // or a list; empty: chosen by address
  std::string backend;            // that the user wants; empty: what the program does
  bool is_strict = false;
  bool checks_all_calls = false;  // debug level DETAIL
};

// ", rank 1 of 4".
std::string PlaceOf(const Environment& environment);

// The value of a variable or null, as getenv.
using GetVariable = std::function<const char*(const char* name)>;

// What of it the program has said itself, so that no variable is needed.
struct Given {
  std::optional<int> global_rank = {};
  std::optional<int> world_size = {};
  bool address = false;
};

// Errors: kInvalid, naming the variable, what it is and what it should be.
Result<Environment> ReadEnvironment(const GetVariable& get, const Given& given = {});

// The local address at which this rank can be reached by the others.
// `store_connection_host` is this side's address of its connection to the
// store: what reaches the store reaches the other ranks, unless all of them
// are here, where loopback needs no network at all.
std::string ListenHost(const Environment& environment, const std::string& store_connection_host);

}  // namespace rankrun::comm
