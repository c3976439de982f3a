#include "bench/store/store_storm.h"

#include <cstring>
#include <vector>

#include "bench/store/store_peers.h"
#include "store/wire/wire.h"

namespace rankrun::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using store::EncodeRequest;

// Key in which PyTorch's clients count themselves.
constexpr const char* kCounter = "init/";

class Storm {
 public:
  Storm(Peers& peers, size_t clients)
      : peers_(peers), clients_(clients), counted_(clients, false), key_(FreshName("/storm/")) {}

  Result<void> Run();

 private:
  enum class Phase { kGreeting, kCounting, kWaiting, kReleased };
  struct Client {
    Phase phase = Phase::kGreeting;
    std::string reply;  // received part of the reply
  };

  Result<void> OnBytes(size_t number, std::string_view bytes);
  Result<void> OnGreeted(size_t number);
  Result<void> OnCounted(size_t number);
  Result<void> OnReleased(size_t number);

  Peers& peers_;
  const size_t clients_;
  std::vector<bool> counted_;  // indexed by the received count
  const std::string key_;
  std::vector<Client> state_ = std::vector<Client>(clients_);
  size_t released_ = 0;
};

Error Wrong(size_t number, const std::string& what) {
  return {ErrorCode::kProtocol, "client " + std::to_string(number) + ": a wrong reply to " + what};
}

Result<void> Storm::Run() {
  constexpr size_t kConnectsInARow = 32;
  Peers::OnBytes on_bytes = [this](size_t number, std::string_view bytes) {
    return OnBytes(number, bytes);
  };
  for (size_t i = 0; i < clients_; ++i) {
    if (auto ok = peers_.Add(StoreGreeting(i).send); !ok) return ok;
    if (i % kConnectsInARow != 0) continue;
    if (auto ok = peers_.Poll(on_bytes); !ok) return ok;
  }
  while (released_ < clients_) {
    if (auto ok = peers_.Wait(on_bytes); !ok) {
      return std::move(ok).error().In(std::to_string(released_) + " of " +
                                      std::to_string(clients_) + " clients released");
    }
  }
  return {};
}

Result<void> Storm::OnBytes(size_t number, std::string_view bytes) {
  Client& client = state_[number];
  client.reply += bytes;
  switch (client.phase) {
    case Phase::kGreeting:
      return client.reply.size() < sizeof(uint32_t) ? Result<void>() : OnGreeted(number);
    case Phase::kCounting:
      return client.reply.size() < sizeof(int64_t) ? Result<void>() : OnCounted(number);
    case Phase::kWaiting:
      return OnReleased(number);
    case Phase::kReleased:
      return Wrong(number, "nothing, after its WAIT");
  }
  __builtin_unreachable();
}

Result<void> Storm::OnGreeted(size_t number) {
  Client& client = state_[number];
  if (client.reply != StoreGreeting(number).expect) return Wrong(number, "PING");
  client = {Phase::kCounting, {}};
  return peers_.Send(number, EncodeRequest(store::AddRequest{kCounter, 1}));
}

Result<void> Storm::OnCounted(size_t number) {
  Client& client = state_[number];
  int64_t sum = 0;
  std::memcpy(&sum, client.reply.data(), sizeof sum);
  bool wrong = client.reply.size() != sizeof sum || sum < 1 ||
               sum > static_cast<int64_t>(clients_) || counted_[static_cast<size_t>(sum - 1)];
  if (wrong) return Wrong(number, "ADD");
  counted_[static_cast<size_t>(sum - 1)] = true;
  client = {Phase::kWaiting, {}};
  std::string next;
  if (sum == static_cast<int64_t>(clients_)) next = EncodeRequest(store::SetRequest{key_, "1"});
  return peers_.Send(number, next + EncodeRequest(store::WaitRequest{{key_}}));
}

Result<void> Storm::OnReleased(size_t number) {
  Client& client = state_[number];
  if (client.reply != std::string(1, '\0')) return Wrong(number, "WAIT");
  client = {Phase::kReleased, {}};
  released_ += 1;
  return {};
}

Result<void> ResetCounter(const Target& target) {
  auto control = Peers::Create(target.address, target.patience);
  if (!control) return control.error();
  return AddAndGreet(**control, 1, [](size_t peer) {
    Greeting greeting = StoreGreeting(peer);
    greeting.send += EncodeRequest(store::SetRequest{kCounter, "0"});
    greeting.send += EncodeRequest(store::PingRequest{0});  // answered when that is done
    greeting.expect += greeting.expect;
    return greeting;
  });
}

}  // namespace

Result<StormFigures> RunStorm(const Target& target, size_t clients) {
  if (auto ok = AllowOpenFiles(clients); !ok) return ok.error();
  if (auto ok = ResetCounter(target); !ok) return ok.error();
  auto peers = Peers::Create(target.address, target.patience);
  if (!peers) return peers.error();
  Storm storm(**peers, clients);
  auto cpu_begin = target.CpuNanoseconds();
  if (!cpu_begin) return cpu_begin.error();
  auto begin = SteadyClock::now();
  if (auto ok = storm.Run(); !ok) return ok.error();
  std::chrono::duration<double, std::milli> took = SteadyClock::now() - begin;
  auto cpu_end = target.CpuNanoseconds();
  if (!cpu_end) return cpu_end.error();
  StormFigures figures{.ms = took.count()};
  if (target.pid == 0) return figures;
  double cpu_us = static_cast<double>(*cpu_end - *cpu_begin) / 1e3;
  figures.server_cpu_us_per_client = cpu_us / static_cast<double>(clients);
  return figures;
}

}  // namespace rankrun::bench
