#include "comm/gloo/gloo_mesh.h"

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
#include "comm/gloo/gloo_card.h"
#include "comm/gloo/gloo_device.h"
#include "comm/gloo/gloo_words.h"
#include "comm/gloo/pair_closer.h"
#include "comm/gloo/without_sigpipe.h"
#include "comm/time_left.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr int kMeshes = 4;

// How long a rank that is connected waits for the others' secrets, in the first
// mesh; twice as long in each that follows. What a stranger has said before the
// peer came shifts all that the peer says, and nothing of it is understood.
constexpr std::chrono::seconds kPatience{2};
constexpr milliseconds kVerdictEvery{20};
constexpr milliseconds kHelloEvery{1};

// How often to look for losses while all agree. A loss is told at the second
// look only: by then an agent has told the death that it comes from.
constexpr milliseconds kLossesEvery{100};
const std::string kGood = "good";
const std::string kRefused = "refused: ";  // in place of a card, before the reason
const std::string kOver = "over: ";        // before a verdict after which no mesh is tried
const std::string kOthersGaveUp = "another rank found it bad";

TimePoint Now() { return std::chrono::steady_clock::now(); }

Error OfStore(Error error) {
  if (error.code != ErrorCode::kCancelled && error.code != ErrorCode::kTimeout) {
    error.code = ErrorCode::kProtocol;
  }
  return error;
}

// A Gloo context that is filled by hand: Gloo's own way stops at the first
// connection that fails, and then the ranks after it wait in vain.
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

// One attempt of all ranks.
class Attempt {
 public:
  Attempt(const BackendConfig& config, int number, TimePoint deadline)
      : config_(config),
        prefix_(config.key_prefix + "/mesh_" + std::to_string(number)),
        deadline_(deadline),
        patience_(kPatience * (1 << number)),
        secret_(NewSecret()) {}

  // Meets the others and connects to them. Empty: all has gone well here, else
  // why not.
  Result<std::string> Connect(const GlooDevice& device);

  // In place of Connect: tells the others, who wait for it, why.
  Error Refuse(Error reason);

  // What all ranks make of it: empty, or why not. An error: there is no use in
  // another attempt.
  Result<std::string> Agree(const std::string& complaint);

  Mesh TakeMesh() { return std::move(mesh_); }

 private:
  Result<void> Publish();
  Result<void> ReadCards();
  std::vector<int> Without(const std::string& folder);
  Error Absent();
  Result<void> CheckInterfaces();
  bool OthersGaveUp();
  std::string ConnectPairs();
  std::string ShowSecrets();
  std::string AwaitSecrets();
  std::string Hear(std::vector<bool>& heard);
  std::string LossOf(int peer);
  std::string FirstLoss();
  Result<std::string> AwaitVerdict();
  Result<void> Judge(const std::string& verdict);
  Error Undecided();
  std::string VerdictKey() const { return prefix_ + "/verdict"; }
  std::string Key(int rank) const { return prefix_ + "/" + std::to_string(rank); }
  std::string Name(int rank) const {
    return NameRanks({config_.global_ranks[static_cast<std::size_t>(rank)]});
  }

  const BackendConfig& config_;
  const std::string prefix_;
  const TimePoint deadline_;
  const std::chrono::seconds patience_;
  const std::string secret_;
  TimePoint next_verdict_ = {};  // when to look for it again
  std::map<int, Card> cards_;    // of the others
  Mesh mesh_;
};

Result<std::string> Attempt::Connect(const GlooDevice& device) {
  try {
    mesh_.context = std::make_shared<MeshContext>(config_, device);
  } catch (const std::exception& exception) {
    return Refuse(Error{ErrorCode::kSystem, PlainWords(exception.what())});
  }
  if (auto ok = Publish(); !ok) return std::move(ok).error();
  if (auto ok = ReadCards(); !ok) return std::move(ok).error();
  if (auto ok = CheckInterfaces(); !ok) return std::move(ok).error();
  if (std::string complaint = ConnectPairs(); !complaint.empty()) return complaint;
  return ShowSecrets();
}

Error Attempt::Refuse(Error reason) {
  static_cast<void>(config_.store.Set(Key(config_.group_rank), kRefused + reason.message));
  return reason;
}

Result<void> Attempt::Publish() {
  Card card{.secret = secret_, .interfaces = InterfacesOf(config_)};
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer == config_.group_rank) continue;
    card.addresses[peer] = mesh_.context->getPair(peer)->address().bytes();
  }
  auto ok = config_.store.Set(Key(config_.group_rank), Encode(card));
  if (!ok) return OfStore(ok.error());
  return {};
}

Result<void> Attempt::ReadCards() {
  std::vector<std::string> keys;
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer != config_.group_rank) keys.push_back(Key(peer));
  }
  if (auto ok = config_.store.Wait(keys, TimeLeft(deadline_)); !ok) {
    return ok.error().code == ErrorCode::kTimeout ? Absent() : OfStore(ok.error());
  }
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    if (peer == config_.group_rank) continue;
    auto text = config_.store.Get(Key(peer), TimeLeft(deadline_));
    if (!text) return OfStore(text.error());
    if (text->starts_with(kRefused)) {
      return Error{ErrorCode::kSystem, text->substr(kRefused.size())}.In(Name(peer));
    }
    auto card = DecodeCard(*text, peer, config_.group_rank, config_.world_size());
    if (!card) return std::move(card).error();
    cards_[peer] = *std::move(card);
  }
  return {};
}

// The global ranks that have set no key in `folder`.
std::vector<int> Attempt::Without(const std::string& folder) {
  std::vector<int> without;
  for (int peer = 0; peer < config_.world_size(); ++peer) {
    const std::string key = folder + "/" + std::to_string(peer);
    const auto there = config_.store.Check(std::span(&key, 1));
    if (there && !*there) without.push_back(config_.global_ranks[static_cast<std::size_t>(peer)]);
  }
  return without;
}

Error Attempt::Absent() {
  return {ErrorCode::kTimeout, "no address from " + NameRanks(Without(prefix_)) + " after " +
                                   std::to_string(config_.timeout.count()) + " ms"};
}

Result<void> Attempt::CheckInterfaces() {
  std::map<uint32_t, std::vector<int>> ranks;
  for (int r = 0; r < config_.world_size(); ++r) {
    const bool own = r == config_.group_rank;
    ranks[own ? InterfacesOf(config_) : cards_[r].interfaces].push_back(
        config_.global_ranks[static_cast<std::size_t>(r)]);
  }
  if (ranks.size() == 1) return {};
  std::string text;
  for (const auto& [interfaces, members] : ranks) {
    if (!text.empty()) text += ", ";
    text += std::to_string(interfaces) + " on " + NameRanks(members);
  }
  return Error{ErrorCode::kInvalid, "GLOO_SOCKET_IFNAME names different numbers of interfaces: " +
                                        text + ": want the same number on all ranks"};
}

// Whether a connection will not come, or not be of use any more.
bool Attempt::OthersGaveUp() {
  if (config_.deaths.told()) return true;
  if (Now() < next_verdict_) return false;
  next_verdict_ = Now() + kVerdictEvery;
  const std::string verdict = VerdictKey();
  const auto there = config_.store.Check(std::span(&verdict, 1));
  return !there || *there;  // if the store is gone, that is found when all agree
}

// Goes on after a failure: the others count on this rank's connections.
std::string Attempt::ConnectPairs() {
  const WithoutSigpipe without_sigpipe;
  next_verdict_ = Now() + kVerdictEvery;
  PairCloser closer(*mesh_.context, [this] { return OthersGaveUp(); });
  if (auto ok = closer.Start(); !ok) return ok.error().message;
  std::string complaint;
  for (const auto& [peer, card] : cards_) {
    if (closer.closes()) break;
    try {
      mesh_.context->getPair(peer)->connect(card.addresses.at(config_.group_rank));
    } catch (const std::exception& exception) {
      if (complaint.empty()) {
        complaint = "connect to " + Name(peer) + ": " + PlainWords(exception.what());
      }
    }
  }
  return closer.Stop() ? kOthersGaveUp : complaint;
}

std::string Attempt::ShowSecrets() {
  const WithoutSigpipe without_sigpipe;
  mesh_.control = std::make_unique<Control>(mesh_.context);
  ControlMessage hello{.kind = ControlMessage::Kind::kHello};
  std::memcpy(hello.payload.data(), secret_.data(), secret_.size());
  for (const auto& [peer, card] : cards_) mesh_.control->Send(peer, hello);
  return AwaitSecrets();
}

std::string Attempt::AwaitSecrets() {
  std::vector<bool> heard(static_cast<std::size_t>(config_.world_size()), false);
  heard[static_cast<std::size_t>(config_.group_rank)] = true;
  const TimePoint until = std::min(deadline_, Now() + patience_);
  while (Now() < until) {
    const std::string complaint = Hear(heard);
    if (!complaint.empty()) return complaint;
    if (std::find(heard.begin(), heard.end(), false) == heard.end()) return "";
    if (OthersGaveUp()) return kOthersGaveUp;
    std::this_thread::sleep_for(kHelloEvery);
  }
  const auto silent = std::find(heard.begin(), heard.end(), false) - heard.begin();
  return "no word from " + Name(static_cast<int>(silent));
}

std::string Attempt::Hear(std::vector<bool>& heard) {
  for (const auto& [peer, card] : cards_) {
    if (heard[static_cast<std::size_t>(peer)]) continue;
    const auto hello = mesh_.control->Receive(peer);
    if (hello) {
      const std::string secret(hello->payload.data(), kSecretBytes);
      if (secret != card.secret) return "a stranger has the connection of " + Name(peer);
      heard[static_cast<std::size_t>(peer)] = true;
    } else if (std::string loss = LossOf(peer); !loss.empty()) {
      return loss;
    }
  }
  return "";
}

// Empty: there is none.
std::string Attempt::LossOf(int peer) {
  const auto why = mesh_.control->Lost(peer);
  return why ? "lost " + Name(peer) + ": " + *why : "";
}

std::string Attempt::FirstLoss() {
  if (mesh_.control == nullptr) return "";  // it could not connect
  for (const auto& [peer, card] : cards_) {
    if (std::string loss = LossOf(peer); !loss.empty()) return loss;
  }
  return "";
}

Result<std::string> Attempt::Agree(const std::string& complaint) {
  if (!complaint.empty()) {
    if (auto ok = Judge(Name(config_.group_rank) + ": " + complaint); !ok) return ok.error();
    return AwaitVerdict();
  }
  auto good = config_.store.Add(prefix_ + "/good", 1);
  if (!good) return OfStore(good.error());
  if (*good == config_.world_size()) {
    if (auto ok = Judge(kGood); !ok) return ok.error();
  }
  auto ok = config_.store.Set(prefix_ + "/good/" + std::to_string(config_.group_rank), "");
  if (!ok) return OfStore(ok.error());
  return AwaitVerdict();
}

Result<void> Attempt::Judge(const std::string& verdict) {
  if (auto ok = config_.store.CompareSet(VerdictKey(), "", verdict); !ok) {
    return OfStore(ok.error());
  }
  return {};
}

// Who has shown its secret and is lost before it has agreed will not agree.
Result<std::string> Attempt::AwaitVerdict() {
  std::string loss;
  for (;;) {
    auto text = config_.store.Get(VerdictKey(), std::min(TimeLeft(deadline_), kLossesEvery));
    if (text && text->starts_with(kOver)) {
      return Error{ErrorCode::kPeerLost, text->substr(kOver.size())};
    }
    if (text) return *text == kGood ? std::string() : *text;
    if (text.error().code != ErrorCode::kTimeout) return OfStore(text.error());
    if (Now() >= deadline_) return Undecided();
    if (loss.empty()) {
      loss = FirstLoss();
    } else if (auto ok = Judge(kOver + loss); !ok) {
      return ok.error();
    }
  }
}

// The others would take this rank for the first that is lost.
Error Attempt::Undecided() {
  Error error{ErrorCode::kTimeout, "no word from " + NameRanks(Without(prefix_ + "/good")) +
                                       " whether all have connected, after " +
                                       std::to_string(config_.timeout.count()) + " ms"};
  static_cast<void>(Judge(kOver + error.message));
  return error;
}

}  // namespace

Result<Mesh> BuildMesh(const BackendConfig& config) {
  const TimePoint began = Now();
  const TimePoint deadline = began + config.timeout;
  const auto device = MakeDevice(config);
  if (!device) return Attempt(config, 0, deadline).Refuse(device.error());
  std::string complaint;
  for (int number = 0; number < kMeshes; ++number) {
    Attempt attempt(config, number, deadline);
    auto mine = attempt.Connect(*device);
    if (!mine) return std::move(mine).error();
    auto all = attempt.Agree(*mine);
    if (all && all->empty()) return attempt.TakeMesh();
    if (config.deaths.told()) return config.deaths.Ended(began);
    if (!all) return std::move(all).error();
    complaint = *all;
    if (Now() >= deadline) return Error{ErrorCode::kTimeout, "no mesh: " + complaint};
  }
  return Error{ErrorCode::kPeerLost, "connected " + std::to_string(kMeshes) +
                                         " times, and each time a connection was lost or led to "
                                         "a stranger; the last time: " +
                                         complaint};
}

}  // namespace rankrun::comm
