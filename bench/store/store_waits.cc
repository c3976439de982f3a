#include "bench/store/store_waits.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/store/store_peers.h"
#include "store/wire/wire.h"

namespace rankrun::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
using store::EncodeRequest;

// Waiting connections, and connection 0, which sets their keys.
class Waiters {
 public:
  using KeysOf = std::function<std::vector<std::string>(size_t waiter)>;

  // Returns when the server has registered all waits.
  static Result<std::unique_ptr<Waiters>> Register(const Target& target, size_t count,
                                                   const KeysOf& keys_of);

  // Errors: kProtocol, when one has already been released.
  Result<void> CheckThatAllWait();

  // Sends `requests` and waits until all have been released.
  Result<void> Release(std::string_view requests);

 private:
  explicit Waiters(std::unique_ptr<Peers> peers) : peers_(std::move(peers)) {}

  std::unique_ptr<Peers> peers_;
};

Result<std::unique_ptr<Waiters>> Waiters::Register(const Target& target, size_t count,
                                                   const KeysOf& keys_of) {
  if (auto ok = AllowOpenFiles(1 + count); !ok) return ok.error();
  auto peers = Peers::Create(target.address, target.patience);
  if (!peers) return peers.error();
  auto greeted = AddAndGreet(**peers, 1 + count, [&](size_t peer) {
    Greeting greeting = StoreGreeting(peer);
    if (peer == 0) return greeting;
    // The PING is answered while the WAIT is pending, which proves that the
    // server has registered it.
    std::string ping = EncodeRequest(store::PingRequest{static_cast<uint32_t>(peer)});
    greeting.send += EncodeRequest(store::WaitRequest{keys_of(peer - 1)}) + ping;
    greeting.expect += greeting.expect;
    return greeting;
  });
  if (!greeted) return greeted.error();
  return std::unique_ptr<Waiters>(new Waiters(std::move(*peers)));
}

Result<void> Waiters::CheckThatAllWait() {
  return peers_->Poll([](size_t peer, std::string_view) -> Result<void> {
    return Error{ErrorCode::kProtocol,
                 "waiter " + std::to_string(peer) + ": released before its keys were set"};
  });
}

Result<void> Waiters::Release(std::string_view requests) {
  if (auto ok = peers_->Send(0, requests); !ok) return ok;
  std::vector<bool> released(peers_->size());
  size_t count = 0;
  Peers::OnBytes on_bytes = [&](size_t peer, std::string_view bytes) -> Result<void> {
    if (peer == 0 || released[peer] || bytes != std::string_view("\0", 1)) {
      return Error{ErrorCode::kProtocol,
                   "waiter " + std::to_string(peer) + ": a wrong reply to WAIT"};
    }
    released[peer] = true;
    count += 1;
    return {};
  };
  while (count < peers_->size() - 1) {
    if (auto ok = peers_->Wait(on_bytes); !ok) {
      return std::move(ok).error().In(std::to_string(count) + " of " +
                                      std::to_string(peers_->size() - 1) + " waiters released");
    }
  }
  return {};
}

// In pieces, because PyTorch's server restarts the decoding of a request
// whenever more of it arrives.
std::string SetAll(const std::vector<std::string>& keys) {
  constexpr size_t kKeysPerRequest = 100;
  std::string bytes;
  for (size_t begin = 0; begin < keys.size(); begin += kKeysPerRequest) {
    store::MultiSetRequest request;
    for (size_t i = begin; i < std::min(keys.size(), begin + kKeysPerRequest); ++i) {
      request.entries.emplace_back(keys[i], "1");
    }
    bytes += EncodeRequest(request);
  }
  return bytes;
}

}  // namespace

Result<WaitsFigures> RunWaits(const Target& target, const WaitsOptions& options) {
  WaitsFigures figures;
  LoadOptions load{.operation = Operation::kSet, .connections = 1, .time = options.time};
  auto without = RunLoad(target, load);
  if (!without) return without.error();
  figures.without = *without;

  std::vector<std::string> keys(options.keys);
  std::string prefix = FreshName("/waits/") + "/";
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = prefix + std::to_string(i);
  auto begin_of = [&](size_t waiter) {
    return keys.begin() + static_cast<ptrdiff_t>(waiter * keys.size() / options.connections);
  };
  auto begin = SteadyClock::now();
  auto waiters = Waiters::Register(target, options.connections, [&](size_t waiter) {
    return std::vector<std::string>(begin_of(waiter), begin_of(waiter + 1));
  });
  if (!waiters) return waiters.error();
  figures.register_ms = Milliseconds(SteadyClock::now() - begin).count();

  auto with = RunLoad(target, load);
  if (!with) return with.error();
  figures.with = *with;
  if (auto ok = (*waiters)->CheckThatAllWait(); !ok) return ok.error();
  begin = SteadyClock::now();
  if (auto ok = (*waiters)->Release(SetAll(keys)); !ok) return ok.error();
  figures.release_ms = Milliseconds(SteadyClock::now() - begin).count();
  return figures;
}

Result<WakeFigures> RunWake(const Target& target, size_t waiter_count) {
  std::string key = FreshName("/wake/");
  auto waiters = Waiters::Register(target, waiter_count,
                                   [&](size_t) { return std::vector<std::string>{key}; });
  if (!waiters) return waiters.error();
  if (auto ok = (*waiters)->CheckThatAllWait(); !ok) return ok.error();
  auto cpu_begin = target.CpuNanoseconds();
  if (!cpu_begin) return cpu_begin.error();
  auto begin = SteadyClock::now();
  if (auto ok = (*waiters)->Release(EncodeRequest(store::SetRequest{key, "1"})); !ok) {
    return ok.error();
  }
  Milliseconds took = SteadyClock::now() - begin;
  auto cpu_end = target.CpuNanoseconds();
  if (!cpu_end) return cpu_end.error();
  WakeFigures figures{.ms = took.count()};
  if (target.pid == 0) return figures;
  double cpu_us = static_cast<double>(*cpu_end - *cpu_begin) / 1e3;
  figures.server_cpu_us_per_waiter = cpu_us / static_cast<double>(waiter_count);
  return figures;
}

}  // namespace rankrun::bench
