#pragma once

#include <functional>
#include <map>
#include <string>

#include <rankrun/distributed.h>

// Collectives of one rank, for tests in which ranks are late.
namespace rankrun::comm {

struct LateCall {
  // Makes the call with `count` elements per rank.
  std::function<void(ProcessGroup& group, size_t count, GlobalRank root,
                     const CallOptions& options)>
      run;
  enum class Results { kAll, kRoot, kAllButRoot } results;  // ranks that get any
};

// By name: "AllReduce".
const std::map<std::string, LateCall>& LateCalls();

// Runs `call` and returns its error, or "success".
std::string OutcomeOf(const std::function<void()>& call);

}  // namespace rankrun::comm
