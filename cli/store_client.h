#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/endpoint.h"
#include "launcher/flag_parser.h"
#include "store/tcp_store.h"

namespace rankrun::cli {

// A connection to the store that the flags and the environment name.
struct StoreClient {
  std::unique_ptr<store::TcpStore> store;
  Endpoint endpoint;
  std::chrono::milliseconds timeout;  // --timeout, for whatever is waited for
};

// Connects. Keys are seen as --prefix and --raw say.
// Errors: kInvalid for what is wrong with the command line or a variable; else
// those of TcpStore::Connect.
Result<StoreClient> OpenStore(const launcher::ParsedFlags& flags);

// The same for a command that --timeout ends: connecting, and each reply, may
// take as long as without it.
Result<StoreClient> OpenStoreToWatch(const launcher::ParsedFlags& flags);

// The same for the server's keys as they are, whatever the flags say.
Result<StoreClient> OpenRawStore(const launcher::ParsedFlags& flags);

// Waits until all keys are there, at most for `timeout`. Returns those that are
// missing then. Errors: those of the store.
Result<std::vector<std::string>> MissingAfter(store::TcpStore& store,
                                              std::span<const std::string> keys,
                                              std::chrono::milliseconds timeout);

// Which of `keys` are not there now.
Result<std::vector<std::string>> MissingOf(store::TcpStore& store,
                                           std::span<const std::string> keys);

// The value of a key, or nothing if it is not there. Over the wire these are
// two requests: of a key that is deleted between them, the value is empty.
Result<std::optional<std::string>> Look(store::TcpStore& store, const std::string& key);

// For what is only to explain something: long enough for a server that is there.
constexpr std::chrono::seconds kToExplain{1};

// Tells queues from keys: for Check and Wait, a queue that is not empty exists
// as a key does, and its value is then empty.
class QueueFinder {
 public:
  explicit QueueFinder(store::TcpStore& store) : store_(store) {}

  // Whether `key`, which exists and is empty, is (also) the name of a queue. No
  // if the server cannot tell.
  bool IsQueue(const std::string& key);

 private:
  store::TcpStore& store_;
  // Servers without queues close the connection that asks.
  std::unique_ptr<store::Store> asker_;
  bool has_failed_ = false;
};

// "key a", "keys a, b": all of them, escaped.
std::string NameKeys(std::span<const std::string> keys);

// Says what went wrong with a store. Returns the exit code.
int FailStore(const Error& error);

}  // namespace rankrun::cli
