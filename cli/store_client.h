#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/endpoint.h"
#include "launcher/flags/flag_parser.h"
#include "store/clients/tcp_store.h"

namespace rankrun::cli {

// Connection to the store that the flags and the environment name.
struct StoreClient {
  std::unique_ptr<store::TcpStore> store;
  Endpoint endpoint;
  std::chrono::milliseconds timeout;  // of --timeout, for waits
};

// Connects. --prefix and --raw determine how keys are named.
// Errors: kInvalid for a wrong flag or variable; else those of
// TcpStore::Connect.
Result<StoreClient> OpenStore(const launcher::ParsedFlags& flags);

// The same for a command that ends after --timeout. Connecting, and each reply,
// may take as long as without that flag.
Result<StoreClient> OpenStoreToWatch(const launcher::ParsedFlags& flags);

// The same with keys as the server has them: ignores --prefix and --raw.
Result<StoreClient> OpenRawStore(const launcher::ParsedFlags& flags);

// Waits until all keys are set, at most for `timeout`. Returns the keys that are
// missing then. Errors: those of the store.
Result<std::vector<std::string>> MissingAfter(store::TcpStore& store,
                                              std::span<const std::string> keys,
                                              std::chrono::milliseconds timeout);

// Returns the keys that are not set now.
Result<std::vector<std::string>> MissingOf(store::TcpStore& store,
                                           std::span<const std::string> keys);

// Returns the value of a key, or nothing if it is not set. These are two
// requests: the value of a key that is deleted between them is empty.
Result<std::optional<std::string>> Look(store::TcpStore& store, const std::string& key);

// Time-out of a request that only explains a failure.
constexpr std::chrono::seconds kToExplain{1};

// Distinguishes queues from keys. For Check and Wait, a queue that is not empty
// exists like a key, with an empty value.
class QueueFinder {
 public:
  explicit QueueFinder(store::TcpStore& store) : store_(store) {}

  // Returns whether `key`, which exists and is empty, is (also) the name of a
  // queue; false if the server does not know.
  bool IsQueue(const std::string& key);

 private:
  store::TcpStore& store_;
  // A connection of its own, because servers without queues close the one that
  // asks for a queue.
  std::unique_ptr<store::Store> asker_;
  bool has_failed_ = false;
};

// Returns "key a" or "keys a, b", with all keys escaped.
std::string NameKeys(std::span<const std::string> keys);

// Prints the error of a store. Returns the exit code.
int FailStore(const Error& error);

}  // namespace rankrun::cli
