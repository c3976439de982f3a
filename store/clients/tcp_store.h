#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status/death_watch.h"
#include "store/clients/client_socket.h"
#include "store/engine/reply.h"
#include "store/engine/request.h"
#include "store/store.h"

namespace rankrun::store {

struct TcpStoreOptions {
  // Limit for connecting and the greeting together. Only the resolver's own
  // time-outs limit the look-up of the name.
  std::chrono::milliseconds connect_timeout{300'000};
  // Limit for sending a request and receiving its reply. Waits for keys and
  // queues have a time-out of their own in addition.
  std::chrono::milliseconds reply_timeout{60'000};
  // Prefix of this store's keys on the server; other keys are invisible. Empty:
  // the server's keys as they are.
  std::string key_prefix = "/";
  bool asks_why = true;  // over another connection, if the server has closed this one
  // Source of reported deaths. A death ends waits for keys and queues. It ends a
  // wait for a reply, or an attempt to connect, only if it is reported meanwhile.
  DeathWatch deaths = {};
};

// Client of one store server, rankrun's or PyTorch's (2.3 or newer). Blocking;
// needs no event loop. Prefixes keys with "/" as PyTorch's clients do, so both
// see the same keys, unless the options say otherwise.
//
// After a time-out or a cancelled wait for keys (kTimeout, kCancelled) the
// store remains usable. Any other error breaks it for good: later calls fail
// with kPeerLost and name the first error. A missing reply is kPeerLost, too.
// Thread: any; calls are serialised, so a Wait blocks other calls.
// Lifetime: independent of the server.
// Source: docs/store-protocol.md.
class TcpStore final : public Store {
 public:
  // Connects to the server. Retries with pauses until `connect_timeout`.
  // Errors at the time-out, by the last failure: kNotFound (no such name),
  // kPeerLost (refused, reset, closed), kTimeout (no answer). At once:
  // kProtocol, when the peer is not a store server.
  static Result<std::unique_ptr<TcpStore>> Connect(const std::string& host, uint16_t port,
                                                   const TcpStoreOptions& options = {});

  Result<void> Set(std::string_view key, std::string_view value) override;
  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override;
  // Returns the value of an existing key, after a successful Check, without
  // waiting. If the key was deleted since, returns an empty value, or kPeerLost
  // from PyTorch's server without libuv.
  Result<std::string> GetNow(std::string_view key);

  Result<int64_t> Add(std::string_view key, int64_t delta) override;
  Result<bool> Check(std::span<const std::string> keys) override;

  // Keys that are set at the instant of the time-out count as existing. With
  // more than 64 keys, the error names at least one missing key.
  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;

  // Meets callers on any TcpStore, and those of PyTorch's TCPStore.barrier.
  // Errors: kPeerLost from a server without barriers (PyTorch's before 2.13 or
  // without libuv) or if the value at `key` is not a number, because the server
  // then closes the connection.
  Result<void> Barrier(std::string_view key, int64_t world_size,
                       std::chrono::milliseconds timeout) override;

  // The protocol does not report whether `desired` was stored. `swapped` is
  // also true when the value was `desired` before, or when the key is missing
  // and `expected` equals `desired`.
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

  // Opens another connection to the same address, with the same options except
  // for the time-outs.
  // Errors: those of Connect, but kPeerLost at once, because the server has
  // been reachable before. Works also when this store is broken.
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                           std::chrono::milliseconds reply_timeout) override;

  // Adds `more` to PyTorch's count of the stores that workers have opened, and
  // returns the sum. Set and Get cannot reach that key.
  Result<int64_t> CountWorkers(int64_t more);

  // Address of the connection on this host.
  const SocketAddress& local_address() const { return local_address_; }

 private:
  TcpStore(ClientSocket socket, const TcpStoreOptions& options);

  std::string WireKey(std::string_view key) const { return options_.key_prefix + std::string(key); }
  std::vector<std::string> WireKeys(std::span<const std::string> keys) const;

  // One round trip each.
  Result<int64_t> RequestNumber(const Request& request) REQUIRES(mutex_);
  Result<std::string> RequestValue(const Request& request) REQUIRES(mutex_);
  Result<std::optional<std::string>> RequestPop(std::string_view key) REQUIRES(mutex_);

  Result<bool> AwaitRelease(const Request& request, std::chrono::milliseconds timeout)
      REQUIRES(mutex_);
  Result<std::vector<std::string>> AwaitKeys(std::span<const std::string> keys,
                                             std::chrono::milliseconds timeout) REQUIRES(mutex_);
  Result<void> EndWait(Error death) REQUIRES(mutex_);
  Result<bool> CancelWait(TimePoint deadline) REQUIRES(mutex_);
  Result<std::vector<std::string>> FindMissing(std::span<const std::string> keys,
                                               TimePoint deadline) REQUIRES(mutex_);
  Result<std::vector<std::string>> FindMissingSlices(std::span<const std::string> keys,
                                                     size_t slice_size, TimePoint deadline)
      REQUIRES(mutex_);

  Result<void> Send(const Request& request, TimePoint deadline) REQUIRES(mutex_);
  Result<void> SendBytes(std::string_view bytes, TimePoint deadline) REQUIRES(mutex_);
  Result<void> Receive(std::span<char> bytes, TimePoint deadline) REQUIRES(mutex_);
  Result<std::string> ReceiveValue(TimePoint deadline) REQUIRES(mutex_);
  Result<std::vector<std::string>> ReceiveValues(uint64_t count, TimePoint deadline)
      REQUIRES(mutex_);
  template <typename Answer>
  Result<Answer> ReceiveByte(Answer largest, TimePoint deadline) REQUIRES(mutex_);
  Error Break(Error error) REQUIRES(mutex_);
  std::string WhyRefused() const;
  TimePoint ReplyDeadline() const;

  const TcpStoreOptions options_;
  const SocketAddress local_address_;
  const SocketAddress server_address_;
  Mutex mutex_;
  ClientSocket socket_ GUARDED_BY(mutex_);
  DeathWatch news_ GUARDED_BY(mutex_);  // deaths reported since the current request was sent
  std::optional<std::string> broken_ GUARDED_BY(mutex_);  // first error
};

}  // namespace rankrun::store
