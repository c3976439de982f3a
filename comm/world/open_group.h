#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <rankrun/distributed.h>

#include "base/fd.h"
#include "base/private_api.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/stream/connection.h"
#include "comm/world/environment.h"
#include "store/store.h"

namespace rankrun::comm {

// Place of this process in a group that processes join and leave, and the store in which
// they meet.
struct OpenPlace {
  std::unique_ptr<store::Store> store = {};
  std::string host = {};               // address at which the others reach this process
  std::string network_interface = {};  // empty: that of `host`
  std::string key_prefix = {};         // of the group's keys, in this attempt
  DeathWatch deaths = {};
};

// Finds the store of the options, or else that of the agent, at once.
// Errors: kInvalid if there is neither, or for a wrong environment; kPeerLost, the store
// cannot be reached.
RANKRUN_PRIVATE_API Result<OpenPlace> FindOpenPlace(const std::string& group,
                                                    const std::shared_ptr<Store>& given,
                                                    std::chrono::milliseconds timeout,
                                                    const GetVariable& get);

// Sign that a process of a group lives: a socket at which the kernel accepts connections
// while the process is there.
class Beacon {
 public:
  // Errors: kExhausted, kSystem.
  RANKRUN_PRIVATE_API static Result<Beacon> Light(const OpenPlace& place);

  const std::string& address() const { return address_; }  // "127.0.0.1:1234"
  // Ends the connections of those that have looked. To be called now and then.
  RANKRUN_PRIVATE_API void ForgetLooks() const;
  // Returns whether one of the processes may live: none has refused the connection or been
  // silent until the limit. Waits for the first that answers.
  RANKRUN_PRIVATE_API static bool AnyShines(std::span<const std::string> addresses,
                                            std::chrono::milliseconds limit);

 private:
  Beacon(Fd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  Fd socket_;
  std::string address_;
};

// Two processes of a group, by ids.
struct Pair {
  int self;
  int other;
  bool is_joiner;          // the other one was there before
  std::string key_prefix;  // both give the same, for this one connection
};

// Connects two processes, which both call it. Setting `is_cancelled` in another thread ends it.
// Errors: as tcp::ConnectAll.
RANKRUN_PRIVATE_API Result<std::unique_ptr<stream::Connection>> ConnectPair(
    const OpenPlace& place, store::Store& store, const Pair& pair,
    std::chrono::milliseconds timeout, const std::atomic<bool>& is_cancelled);
// Deletes the keys of a pair whose calls of ConnectPair have both succeeded.
RANKRUN_PRIVATE_API void ForgetPair(const OpenPlace& place, store::Store& store, const Pair& pair);

}  // namespace rankrun::comm
