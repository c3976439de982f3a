#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/private_api.h"
#include "base/result.h"
#include "comm/core/algorithm.h"
#include "comm/core/debug_level.h"

namespace rankrun::comm {

// Settings of this worker from the environment variables of the launcher. A
// value.
struct Environment {
  int global_rank = 0;
  int world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  bool agent_serves = false;  // an agent serves the store at that address
  std::optional<int> local_world_size;
  int attempt = 0;
  std::string network_interface;  // one name or a list; empty: chosen by address
  std::string backend;            // the user's choice; empty: the program chooses
  bool is_strict = false;
  std::chrono::milliseconds slow_call{1000};  // as in GroupIdentity
  AlgorithmTable algorithms = {};
};

// ", rank 1 of 4".
std::string PlaceOf(const Environment& environment);

// Settings that the program passes itself, so that their variables are not
// read.
struct Given {
  std::optional<int> global_rank = {};
  std::optional<int> world_size = {};
  bool address = false;  // of the store
};

// Reads the variables of this worker, also those of mpirun and srun.
// Errors: kInvalid, with the variable, its value and the values it may have, or
// with all variables that are not set.
RANKRUN_PRIVATE_API Result<Environment> ReadEnvironment(const GetVariable& get,
                                                        const Given& given = {});

// Returns LOCAL_RANK, or its equivalent of mpirun or srun; without any, a
// `fallback` that is not below 0.
// Errors: kInvalid.
Result<int> LocalRankIn(const GetVariable& get, int fallback);

// Returns the local address at which the other ranks reach this one: loopback
// if all ranks are on this host. Otherwise it is `store_connection_host`, the
// local address of the connection to the store, because the network that
// reaches the store also reaches the other ranks.
std::string ListenHost(const Environment& environment, const std::string& store_connection_host);

}  // namespace rankrun::comm
