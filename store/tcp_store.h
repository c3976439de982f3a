#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/death_watch.h"
#include "store/client_socket.h"
#include "store/reply.h"
#include "store/request.h"
#include "store/store.h"

namespace rankrun::store {

struct TcpStoreOptions {
  // For looking up the name, connecting and the greeting together.
  std::chrono::milliseconds connect_timeout{300'000};
  // For sending a request and receiving its reply; what is waited for keys and
  // queues comes on top.
  std::chrono::milliseconds reply_timeout{60'000};
  // What the server's keys have before those of this store, which sees no
  // others. Empty: the server's keys as they are.
  std::string key_prefix = "/";
  // What ends waits early; those for a reply, and attempts to connect, only if
  // it is told meanwhile.
  DeathWatch deaths = {};
};

// A client of one store server, rankrun's or PyTorch's (2.3 or newer). Blocking;
// needs no event loop. Keys get the "/" before them that PyTorch's clients put
// there, so both see the same keys, unless the options say otherwise.
//
// An error other than that of a key that did not come (kTimeout, kCancelled)
// breaks the store for good: later calls fail with kPeerLost and name the first
// error. A reply that does not come is kPeerLost, too.
// Thread: any; calls are serialised, so a Wait holds up the others.
// Lifetime: independent of the server.
// Source: docs/store-protocol.md.
class TcpStore final : public Store {
 public:
  // Connects to the server, again and again with pauses until `connect_timeout`
  // if it is not there yet.
  // Errors, when time is up, by what failed last: kNotFound (no such name),
  // kPeerLost (refused, reset, closed), kTimeout (no answer). At once:
  // kProtocol, when somebody answers who is no store server.
  static Result<std::unique_ptr<TcpStore>> Connect(const std::string& host, uint16_t port,
                                                   const TcpStoreOptions& options = {});

  Result<void> Set(std::string_view key, std::string_view value) override;
  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override;
  // The value of a key that is there, as Check said: unlike Get, no wait. For a
  // key that has gone since, an empty value, or kPeerLost from a server of
  // PyTorch's without libuv.
  Result<std::string> GetNow(std::string_view key);

  Result<int64_t> Add(std::string_view key, int64_t delta) override;
  Result<bool> Check(std::span<const std::string> keys) override;

  // Keys that come in the instant of the time-out count as come. Of more than
  // 64 keys, at least one that is missing is named.
  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;

  // The protocol does not tell whether `desired` was stored: `swapped` is also
  // true when the value was `desired` before, or is missing and `expected` is
  // `desired`.
  Result<CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                      std::string_view desired) override;
  Result<bool> Delete(std::string_view key) override;
  Result<void> Append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override;
  Result<void> MultiSet(std::span<const std::string> keys,
                        std::span<const std::string> values) override;
  Result<int64_t> NumKeys() override;
  Result<std::vector<std::string>> ListKeys() override;

  Result<void> QueuePush(std::string_view key, std::string_view value) override;
  Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<std::optional<std::string>> TryQueuePop(std::string_view key) override;
  Result<int64_t> QueueLength(std::string_view key) override;

  // Opens a connection of its own, to the same address and with the same
  // options, but for these. Errors: those of Connect; kPeerLost at once, as the
  // server has been there. Works also when this store is broken.
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                           std::chrono::milliseconds reply_timeout) override;

  // Adds to PyTorch's count of the stores that workers have opened, a key that
  // Set and Get cannot reach, and returns it.
  Result<int64_t> CountWorkers(int64_t more);

  // Our end of the connection: the address by which the server's host sees us.
  const SocketAddress& local_address() const { return local_address_; }

 private:
  TcpStore(ClientSocket socket, const TcpStoreOptions& options);

  std::string WireKey(std::string_view key) const { return options_.key_prefix + std::string(key); }
  std::vector<std::string> WireKeys(std::span<const std::string> keys) const;

  // One round trip each. To be called with mutex_ held.
  Result<int64_t> AskNumber(const Request& request);
  Result<std::string> AskValue(const Request& request);
  Result<std::optional<std::string>> AskPop(std::string_view key);
  Result<std::vector<std::string>> AwaitKeys(std::span<const std::string> keys,
                                             std::chrono::milliseconds timeout);
  Result<std::vector<std::string>> EndWait(Error death);
  Result<bool> CancelWait(TimePoint deadline);
  Result<std::vector<std::string>> FindMissing(std::span<const std::string> keys,
                                               TimePoint deadline);
  Result<std::vector<std::string>> FindMissingSlices(std::span<const std::string> keys,
                                                     size_t slice_size, TimePoint deadline);

  Result<void> Send(const Request& request, TimePoint deadline);
  Result<void> SendBytes(std::string_view bytes, TimePoint deadline);
  Result<void> Receive(std::span<char> bytes, TimePoint deadline);
  Result<std::string> ReceiveValue(TimePoint deadline);
  Result<std::vector<std::string>> ReceiveValues(uint64_t count, TimePoint deadline);
  template <typename Answer>
  Result<Answer> ReceiveByte(Answer largest, TimePoint deadline);
  Error Break(Error error);
  TimePoint ReplyDeadline() const;

  const TcpStoreOptions options_;
  const SocketAddress local_address_;
  const SocketAddress server_address_;
  std::mutex mutex_;
  ClientSocket socket_;                // guarded by mutex_
  DeathWatch news_;                    // for the request under way; guarded by mutex_
  std::optional<std::string> broken_;  // by which error; guarded by mutex_
};

}  // namespace rankrun::store
