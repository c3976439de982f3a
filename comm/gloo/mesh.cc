#include "comm/gloo/mesh.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/gloo/device.h"
#include "comm/gloo/error_text.h"
#include "comm/gloo/pair_closer.h"
#include "comm/gloo/peer_info.h"
#include "comm/gloo/without_sigpipe.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxMeshes = 4;

// Time that a connected rank waits for the secrets in the first mesh; it
// doubles with each mesh. A time-out is needed because bytes from another
// program shift the stream of the peer behind it, so that no message ever
// becomes complete.
constexpr std::chrono::seconds kPatience{2};
constexpr milliseconds kVerdictEvery{20};
constexpr milliseconds kHelloEvery{1};

// Interval of checks for losses during the agreement. A loss is reported at the
// second check only; by then the agent has reported a death that caused it.
constexpr milliseconds kLossesEvery{100};
const std::string kGood = "good";
const std::string kRefused = "refused: ";  // replaces the PeerInfo; the reason follows
const std::string kOver = "over: ";        // precedes a verdict that ends all attempts
const std::string kOthersGaveUp = "another rank rejected the connections";

TimePoint Now() { return std::chrono::steady_clock::now(); }

Error AsStoreError(Error error) {
  if (error.code != ErrorCode::kCancelled && error.code != ErrorCode::kTimeout) {
    error.code = ErrorCode::kProtocol;
  }
  return error;
}

// Gloo context whose pairs are connected here. Gloo's own function stops at the
// first failed connection, and then later ranks would wait until their
// time-out.
class MeshContext final : public ::gloo::Context {
 public:
  MeshContext(const BackendConfig& config, const GlooDevice& device)
      : Context(config.group_rank, config.world_size()) {
    device_ = device;
    transportContext_ = device->createContext(rank, size);
    // Gloo allows five times as long for a connection.
    transportContext_->setTimeout(std::max(config.timeout / 5, milliseconds(1)));
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) transportContext_->createPair(peer);
    }
  }
};

// One attempt of all ranks to connect.
class MeshAttempt {
 public:
  MeshAttempt(const BackendConfig& config, int number, TimePoint deadline)
      : config_(config),
        prefix_(config.key_prefix + "/mesh_" + std::to_string(number)),
        deadline_(deadline),
        patience_(kPatience * (1 << number)),
        secret_(NewSecret()) {}

  // Connects to the other ranks and verifies their secrets. Returns the
  // complaint of this rank; empty: success.
  Result<std::string> Connect(const GlooDevice& device);

  // Replaces Connect on a rank that cannot connect: publishes the reason for
  // the ranks that wait for its address.
  Error Refuse(Error reason);

  // Agrees with all ranks on the verdict. Returns the first complaint; empty:
  // all ranks are connected. An error means that another attempt is useless.
  Result<std::string> Agree(const std::string& complaint);

  Mesh TakeMesh() { return std::move(mesh_); }

 private:
  Result<void> Publish();
  Result<void> ReadPeerInfos();
  std::vector<int> RanksWithoutKey(const std::string& folder);
  Error MissingAddresses();
  Result<void> CheckInterfaces();
  bool OthersGaveUp();
  std::string ConnectPairs();
  std::string SendSecrets();
  std::string AwaitSecrets();
  std::string ReceiveSecrets(std::vector<bool>& verified);
  std::string LossOf(int peer);
  std::string FirstLoss();
  Result<std::string> AwaitVerdict();
  Result<void> PublishVerdict(const std::string& verdict);
  Error VerdictTimeout();
  std::string VerdictKey() const { return prefix_ + "/verdict"; }
  std::string Key(int rank) const { return prefix_ + "/" + std::to_string(rank); }
  std::string Name(int rank) const {
    return RanksInWords({config_.global_ranks[static_cast<size_t>(rank)]});
  }

  const BackendConfig& config_;
  const std::string prefix_;
  const TimePoint deadline_;
  const std::chrono::seconds patience_;
  const std::string secret_;
  TimePoint next_verdict_ = {};    // next time to read the verdict
  std::map<int, PeerInfo> peers_;  // of the other ranks
  Mesh mesh_;
};

Result<std::string> MeshAttempt::Connect(const GlooDevice& device) {
  try {
    mesh_.context = std::make_shared<MeshContext>(config_, device);
  } catch (const std::exception& exception) {
    return Refuse(Error{ErrorCode::kSystem, PlainText(exception.what())});
  }
  if (auto ok = Publish(); !ok) return std::move(ok).error();
  if (auto ok = ReadPeerInfos(); !ok) return std::move(ok).error();
  if (auto ok = CheckInterfaces(); !ok) return std::move(ok).error();
  if (std::string complaint = ConnectPairs(); !complaint.empty()) return complaint;
  return SendSecrets();
}

Error MeshAttempt::Refuse(Error reason) {
  static_cast<void>(config_.store.Set(Key(config_.group_rank), kRefused + reason.message));
  return reason;
}

Result<void> MeshAttempt::Publish() {
  PeerInfo info{.secret = secret_, .interfaces = InterfacesOf(config_)};
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer == config_.group_rank) continue;
    info.addresses[peer] = mesh_.context->getPair(peer)->address().bytes();
  }
  auto ok = config_.store.Set(Key(config_.group_rank), Encode(info));
  if (!ok) return AsStoreError(ok.error());
  return {};
}

Result<void> MeshAttempt::ReadPeerInfos() {
  std::vector<std::string> keys;
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer != config_.group_rank) keys.push_back(Key(peer));
  }
  if (auto ok = config_.store.Wait(keys, TimeLeft(deadline_)); !ok) {
    return ok.error().code == ErrorCode::kTimeout ? MissingAddresses() : AsStoreError(ok.error());
  }
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer == config_.group_rank) continue;
    auto text = config_.store.Get(Key(peer), TimeLeft(deadline_));
    if (!text) return AsStoreError(text.error());
    if (text->starts_with(kRefused)) {
      return Error{ErrorCode::kSystem, text->substr(kRefused.size())}.In(Name(peer));
    }
    auto info = DecodePeerInfo(*text, peer, config_.group_rank, config_.world_size());
    if (!info) return std::move(info).error();
    peers_[peer] = *std::move(info);
  }
  return {};
}

// Returns the global ranks that have set no key in `folder`.
std::vector<int> MeshAttempt::RanksWithoutKey(const std::string& folder) {
  std::vector<int> without;
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    std::string key = folder + "/" + std::to_string(peer);
    auto there = config_.store.Check(std::span(&key, 1));
    if (there && !*there) without.push_back(config_.global_ranks[static_cast<size_t>(peer)]);
  }
  return without;
}

Error MeshAttempt::MissingAddresses() {
  return {ErrorCode::kTimeout, "no address from " + RanksInWords(RanksWithoutKey(prefix_)) +
                                   " after " + std::to_string(config_.timeout.count()) + " ms"};
}

Result<void> MeshAttempt::CheckInterfaces() {
  std::map<uint32_t, std::vector<int>> ranks;
  for (int r = 0; r < config_.world_size(); ++r) {
    bool own = r == config_.group_rank;
    ranks[own ? InterfacesOf(config_) : peers_[r].interfaces].push_back(
        config_.global_ranks[static_cast<size_t>(r)]);
  }
  if (ranks.size() == 1) return {};
  std::string text;
  for (const auto& [interfaces, members] : ranks) {
    if (!text.empty()) text += ", ";
    text += std::to_string(interfaces) + " on " + RanksInWords(members);
  }
  return Error{ErrorCode::kInvalid, "GLOO_SOCKET_IFNAME names different numbers of interfaces: " +
                                        text + ": want the same number on all ranks"};
}

// Returns whether this attempt has failed elsewhere, so that waiting is
// useless.
bool MeshAttempt::OthersGaveUp() {
  if (config_.deaths.has_death()) return true;
  if (Now() < next_verdict_) return false;
  next_verdict_ = Now() + kVerdictEvery;
  std::string verdict = VerdictKey();
  auto there = config_.store.Check(std::span(&verdict, 1));
  return !there || *there;  // Agree() reports an error of the store
}

// Connects to all peers. Continues after a failure, because other ranks wait
// for the connections of this one.
std::string MeshAttempt::ConnectPairs() {
  const WithoutSigpipe without_sigpipe;
  next_verdict_ = Now() + kVerdictEvery;
  PairCloser closer(*mesh_.context, [this] { return OthersGaveUp(); });
  if (auto ok = closer.Start(); !ok) return ok.error().message;
  std::string complaint;
  for (const auto& [peer, info] : peers_) {
    if (closer.closes()) break;
    try {
      mesh_.context->getPair(peer)->connect(info.addresses.at(config_.group_rank));
    } catch (const std::exception& exception) {
      if (complaint.empty()) {
        complaint = "connect to " + Name(peer) + ": " + PlainText(exception.what());
      }
    }
  }
  return closer.Stop() ? kOthersGaveUp : complaint;
}

std::string MeshAttempt::SendSecrets() {
  const WithoutSigpipe without_sigpipe;
  mesh_.control = std::make_unique<Control>(mesh_.context);
  ControlMessage hello{.kind = ControlMessage::Kind::kHello};
  std::memcpy(hello.payload.data(), secret_.data(), secret_.size());
  for (const auto& [peer, info] : peers_) mesh_.control->Send(peer, hello);
  return AwaitSecrets();
}

std::string MeshAttempt::AwaitSecrets() {
  std::vector<bool> verified(static_cast<size_t>(config_.world_size()), false);
  verified[static_cast<size_t>(config_.group_rank)] = true;
  TimePoint until = std::min(deadline_, Now() + patience_);
  while (Now() < until) {
    std::string complaint = ReceiveSecrets(verified);
    if (!complaint.empty()) return complaint;
    if (std::find(verified.begin(), verified.end(), false) == verified.end()) return "";
    if (OthersGaveUp()) return kOthersGaveUp;
    std::this_thread::sleep_for(kHelloEvery);
  }
  auto silent = std::find(verified.begin(), verified.end(), false) - verified.begin();
  return "no secret from " + Name(static_cast<int>(silent));
}

std::string MeshAttempt::ReceiveSecrets(std::vector<bool>& verified) {
  for (const auto& [peer, info] : peers_) {
    if (verified[static_cast<size_t>(peer)]) continue;
    auto hello = mesh_.control->Receive(peer);
    if (hello) {
      std::string secret(hello->payload.data(), kSecretBytes);
      if (secret != info.secret) return "another program is connected as " + Name(peer);
      verified[static_cast<size_t>(peer)] = true;
    } else if (std::string loss = LossOf(peer); !loss.empty()) {
      return loss;
    }
  }
  return "";
}

// Returns the loss of `peer` as text; empty: not lost.
std::string MeshAttempt::LossOf(int peer) {
  auto why = mesh_.control->Lost(peer);
  return why ? "lost " + Name(peer) + ": " + *why : "";
}

std::string MeshAttempt::FirstLoss() {
  if (mesh_.control == nullptr) return "";  // this rank could not connect
  for (const auto& [peer, info] : peers_) {
    if (std::string loss = LossOf(peer); !loss.empty()) return loss;
  }
  return "";
}

Result<std::string> MeshAttempt::Agree(const std::string& complaint) {
  if (!complaint.empty()) {
    if (auto ok = PublishVerdict(Name(config_.group_rank) + ": " + complaint); !ok) {
      return ok.error();
    }
    return AwaitVerdict();
  }
  auto good = config_.store.Add(prefix_ + "/good", 1);
  if (!good) return AsStoreError(good.error());
  if (*good == config_.world_size()) {
    if (auto ok = PublishVerdict(kGood); !ok) return ok.error();
  }
  auto ok = config_.store.Set(prefix_ + "/good/" + std::to_string(config_.group_rank), "");
  if (!ok) return AsStoreError(ok.error());
  return AwaitVerdict();
}

Result<void> MeshAttempt::PublishVerdict(const std::string& verdict) {
  if (auto ok = config_.store.CompareSet(VerdictKey(), "", verdict); !ok) {
    return AsStoreError(ok.error());
  }
  return {};
}

// Waits for the verdict. A rank that is lost before it has agreed will never
// agree, so its loss ends all attempts.
Result<std::string> MeshAttempt::AwaitVerdict() {
  std::string loss;
  for (;;) {
    auto text = config_.store.Get(VerdictKey(), std::min(TimeLeft(deadline_), kLossesEvery));
    if (text && text->starts_with(kOver)) {
      return Error{ErrorCode::kPeerLost, text->substr(kOver.size())};
    }
    if (text) return *text == kGood ? std::string() : *text;
    if (text.error().code != ErrorCode::kTimeout) return AsStoreError(text.error());
    if (Now() >= deadline_) return VerdictTimeout();
    if (loss.empty()) {
      loss = FirstLoss();
    } else if (auto ok = PublishVerdict(kOver + loss); !ok) {
      return ok.error();
    }
  }
}

// Publishes the time-out, because otherwise other ranks would report this rank
// as lost when it leaves.
Error MeshAttempt::VerdictTimeout() {
  Error error{ErrorCode::kTimeout, "no confirmation of all connections from " +
                                       RanksInWords(RanksWithoutKey(prefix_ + "/good")) +
                                       " after " + std::to_string(config_.timeout.count()) + " ms"};
  static_cast<void>(PublishVerdict(kOver + error.message));
  return error;
}

}  // namespace

Result<Mesh> BuildMesh(const BackendConfig& config) {
  TimePoint began = Now();
  TimePoint deadline = began + config.timeout;
  auto device = MakeDevice(config);
  if (!device) return MeshAttempt(config, 0, deadline).Refuse(device.error());
  std::string complaint;
  for (int number = 0; number < kMaxMeshes; ++number) {
    MeshAttempt attempt(config, number, deadline);
    auto mine = attempt.Connect(*device);
    if (!mine) return std::move(mine).error();
    auto all = attempt.Agree(*mine);
    if (all && all->empty()) return attempt.TakeMesh();
    if (config.deaths.has_death()) return config.deaths.ErrorSince(began);
    if (!all) return std::move(all).error();
    complaint = *all;
    if (Now() >= deadline) return Error{ErrorCode::kTimeout, "connect all ranks: " + complaint};
  }
  return Error{ErrorCode::kPeerLost, "connected " + std::to_string(kMaxMeshes) +
                                         " times, and each time a connection was lost or led to "
                                         "another program; the last time: " +
                                         complaint};
}

}  // namespace rankrun::comm::gloo
