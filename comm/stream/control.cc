#include "comm/stream/control.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/roll_call.h"
#include "comm/stream/limits.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;

// Time after a loss in which its reason may arrive: a farewell of another rank,
// or the agent's death message. On a busy machine the agent notices a death
// later than the kernel closes the connection.
constexpr milliseconds kFarewellPatience{20};
constexpr milliseconds kAgentPatience{100};

// Time in which the other ranks may send their calls after a difference, or
// answer a probe.
constexpr milliseconds kAnswersPatience{200};
constexpr milliseconds kAnswersEvery{1};

// Code of a farewell without a failure. All others are error codes plus 1.
constexpr uint8_t kLeaves = 0;

TimePoint Now() { return std::chrono::steady_clock::now(); }

// Returns the code that peers get: kMismatch, kCancelled and kPeerLost
// unchanged, all others as kSystem.
uint8_t CodeFor(ErrorCode code) {
  bool known =
      code == ErrorCode::kMismatch || code == ErrorCode::kCancelled || code == ErrorCode::kPeerLost;
  return static_cast<uint8_t>(1 + static_cast<int>(known ? code : ErrorCode::kSystem));
}

ErrorCode ErrorCodeIn(uint8_t code) {
  for (ErrorCode known : {ErrorCode::kMismatch, ErrorCode::kCancelled, ErrorCode::kPeerLost}) {
    if (code == CodeFor(known)) return known;
  }
  return ErrorCode::kSystem;
}

}  // namespace

Control::Control(const BackendConfig& config, std::vector<std::unique_ptr<Connection>> connections,
                 FrameHandler& messages)
    : global_ranks_(config.global_ranks),
      rank_(config.group_rank),
      deaths_(config.deaths),
      messages_(messages),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      peers_(config.global_ranks.size()) {
  RANKRUN_CHECK(epoll_, "cannot create an epoll instance");
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_) continue;
    PeerState& state = peers_[static_cast<size_t>(peer)];
    state.channel =
        std::make_unique<Channel>(std::move(connections[static_cast<size_t>(peer)]), peer, *this);
    epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(peer)}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, state.channel->fd(), &event);
  }
}

std::string Control::NameOf(int rank) const {
  return RanksInWords({global_ranks_[static_cast<size_t>(rank)]});
}

bool Control::TryMove() {
  if (!mutex_.TryLock()) return false;
  MutexLock lock(mutex_, std::adopt_lock);
  return Move();
}

bool Control::Move() {
  std::array<epoll_event, 64> events;
  int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    int peer = static_cast<int>(event.data.u32);
    Channel& channel = *StateOf(peer).channel;
    if ((event.events & EPOLLOUT) != 0) moved |= channel.Write();
    bool is_readable = (event.events & ~uint32_t{EPOLLOUT}) != 0;
    if (is_readable || channel.has_failed()) moved |= channel.Read();
    CheckChannel(peer);
  }
  return moved;
}

// Follows a change of the channel: a loss, or frames that wait for space.
void Control::CheckChannel(int peer) {
  PeerState& state = StateOf(peer);
  if (!state.channel->lost_by().empty()) {
    if (state.loss) return;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, state.channel->fd(), nullptr);
    Lose(peer, state.channel->lost_by());
    return;
  }
  // A channel that has failed wakes Move by the space that it does not use.
  bool for_space = state.channel->has_queued() || state.channel->has_failed();
  if (for_space != state.waits_for_space) Watch(peer, for_space);
}

void Control::Watch(int peer, bool for_space) {
  PeerState& state = StateOf(peer);
  state.waits_for_space = for_space;
  epoll_event event{.events = static_cast<uint32_t>(for_space ? EPOLLIN | EPOLLOUT : EPOLLIN),
                    .data = {.u32 = static_cast<uint32_t>(peer)}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, state.channel->fd(), &event);
}

void Control::Send(int peer, OutgoingFrame frame) {
  PeerState& state = StateOf(peer);
  state.channel->Queue(std::move(frame));
  if (!state.waits_for_space) state.channel->Write();
  CheckChannel(peer);
}

std::byte* Control::SpaceFor(int peer, const FrameHeader& header) NO_THREAD_SAFETY_ANALYSIS {
  // Not analysed: channels call this only inside Move, with the mutex held.
  if (header.kind != FrameKind::kFarewell) return messages_.SpaceFor(peer, header);
  PeerState& state = StateOf(peer);
  state.farewell_text.resize(header.bytes);
  return state.farewell_text.data();
}

void Control::OnFrame(int peer, const FrameHeader& header) NO_THREAD_SAFETY_ANALYSIS {
  // Not analysed: as SpaceFor.
  switch (header.kind) {
    case FrameKind::kFarewell:
      return OnFarewell(peer, header);
    case FrameKind::kCall:
      NoteCall(peer, header);
      return SendCallOf(peer, header.number);
    case FrameKind::kProbe: {
      FrameHeader answer = own_calls_[last_call_ % kCalls];
      answer.kind = FrameKind::kAnswer;
      return Send(peer, {.header = answer});
    }
    case FrameKind::kAnswer:
      StateOf(peer).has_answered = true;
      if (header.number > 0) NoteCall(peer, header);
      return;
    default:
      return messages_.OnFrame(peer, header);
  }
}

void Control::OnWritten(int peer, const OutgoingFrame& frame) {
  if (frame.context != nullptr) messages_.OnWritten(peer, frame);
}

void Control::OnFarewell(int peer, const FrameHeader& header) {
  PeerState& state = StateOf(peer);
  std::string text(reinterpret_cast<const char*>(state.farewell_text.data()),
                   state.farewell_text.size());
  state.farewell = Farewell{.leaves = header.code == kLeaves,
                            .error = {ErrorCodeIn(header.code), std::move(text)}};
  alarmed_.store(true, std::memory_order_release);
}

void Control::Enter(const Operation& operation, uint64_t fingerprint) {
  MutexLock lock(mutex_);
  last_call_ = operation.number;
  own_calls_[operation.number % kCalls] = HeaderOf(FrameKind::kCall, operation, fingerprint);
  if (!std::exchange(has_early_calls_, false)) return;
  for (int peer = 0; peer < ranks(); ++peer) {
    const FrameHeader* call = peer == rank_ ? nullptr : CallOf(peer, operation.number);
    if (call != nullptr && call->fingerprint != fingerprint) NoteDifference(peer, *call);
  }
}

const FrameHeader* Control::OwnCall(uint64_t number) {
  const FrameHeader& call = own_calls_[number % kCalls];
  return number > 0 && call.number == number ? &call : nullptr;
}

const FrameHeader* Control::CallOf(int peer, uint64_t number) {
  for (const FrameHeader& call : StateOf(peer).calls) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

void Control::NoteCall(int peer, const FrameHeader& header) {
  if (CallOf(peer, header.number) != nullptr) return;
  PeerState& state = StateOf(peer);
  state.calls.push_back(header);
  if (state.calls.size() > kCalls) state.calls.pop_front();
  has_early_calls_ = has_early_calls_ || header.number > last_call_;
  const FrameHeader* own = OwnCall(header.number);
  if (own != nullptr && own->fingerprint != header.fingerprint) NoteDifference(peer, header);
}

// The earliest call that differs explains all later ones.
void Control::NoteDifference(int peer, const FrameHeader& header) {
  difference_ = std::min({header.number, last_call_, difference_.value_or(last_call_)});
  NoteCall(peer, header);
  alarmed_.store(true, std::memory_order_release);
}

void Control::SendCall(int peer) { SendCallOf(peer, last_call_); }

// Sends this rank's call of that number, unless that was done or there is none.
void Control::SendCallOf(int peer, uint64_t number) {
  const FrameHeader* own = OwnCall(number);
  PeerState& state = StateOf(peer);
  if (own == nullptr || state.call_sent == number) return;
  state.call_sent = number;
  Send(peer, {.header = *own});
}

bool Control::KnowsAllCalls(uint64_t number) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank_ && CallOf(peer, number) == nullptr && !StateOf(peer).loss) return false;
  }
  return true;
}

template <typename Done>
void Control::MoveUntil(const Done& done) {
  TimePoint until = Now() + kAnswersPatience;
  while (!done() && Now() < until && !deaths_.has_death() && !ended_) {
    if (Move()) continue;
    MutexUnlock unlock(mutex_);
    pollfd wait{.fd = fd(), .events = POLLIN, .revents = 0};
    poll(&wait, 1, static_cast<int>(kAnswersEvery.count()));
  }
}

std::string Control::CompareCalls(uint64_t number) {
  MutexLock lock(mutex_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank_) SendCallOf(peer, number);
  }
  MoveUntil([&]() NO_THREAD_SAFETY_ANALYSIS { return KnowsAllCalls(number); });
  // A peer that ended the group first knew all calls; it may not have sent its own.
  auto failure = FirstFailure();
  if (failure && failure->code == ErrorCode::kMismatch) return failure->message;
  return DescribeKnownCalls(number);
}

std::string Control::ProbePeers() {
  MutexLock lock(mutex_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_) continue;
    StateOf(peer).has_answered = false;
    Send(peer, {.header = {.kind = FrameKind::kProbe}});
  }
  MoveUntil([&]() NO_THREAD_SAFETY_ANALYSIS { return SilentPeers().empty(); });
  std::vector<int> silent = SilentPeers();
  return silent.empty() ? "" : "; no answer from " + RanksInWords(silent);
}

std::vector<int> Control::SilentPeers() {
  std::vector<int> silent;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_ || StateOf(peer).has_answered || StateOf(peer).loss) continue;
    silent.push_back(global_ranks_[static_cast<size_t>(peer)]);
  }
  return silent;
}

std::string Control::DescribeKnownCalls(uint64_t number) {
  const FrameHeader* own = OwnCall(number);
  CallsByRank calls(static_cast<size_t>(ranks()));
  bool differ = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    const FrameHeader* call = rank == rank_ ? own : CallOf(rank, number);
    if (call == nullptr) continue;
    calls[static_cast<size_t>(rank)] = Describe(OperationIn(*call));
    differ = differ || (own != nullptr && call->fingerprint != own->fingerprint);
  }
  return differ || own == nullptr ? DescribeCalls(calls, global_ranks_) : "";
}

void Control::Lose(int peer, const std::string& why) {
  PeerState& state = StateOf(peer);
  if (state.loss) return;
  state.loss = Loss{.since = Now(), .why = why};
  alarmed_.store(true, std::memory_order_release);
}

// Returns the first error that a peer has reported in a farewell.
std::optional<Error> Control::FirstFailure() {
  for (const PeerState& state : peers_) {
    if (state.farewell && !state.farewell->leaves) return state.farewell->error;
  }
  return std::nullopt;
}

std::optional<Error> Control::FindEnd(TimePoint wait_began) {
  if (ended_) return ended_;
  if (auto failure = FirstFailure()) return failure;
  if (deaths_.has_death()) return deaths_.ErrorSince(wait_began);
  return std::nullopt;
}

std::optional<Error> Control::FindLoss(int peer) {
  const PeerState& state = StateOf(peer);
  if (!state.loss) return std::nullopt;
  if (deaths_.has_death()) return Error{ErrorCode::kCancelled, deaths_.Message()};
  bool waits_for_agent = deaths_.has_agent() && !state.farewell;
  milliseconds patience = waits_for_agent ? kAgentPatience : kFarewellPatience;
  if (Now() < state.loss->since + patience) return std::nullopt;
  if (!state.farewell) return LostError(peer);
  // It may have left because of a death that another group has noticed.
  if (auto silent = FirstSilentLoss()) return FindLoss(*silent);
  return Error{ErrorCode::kPeerLost, state.farewell->error.message};
}

Error Control::LostError(int peer) {
  return {ErrorCode::kPeerLost, "lost " + NameOf(peer) + ": " + StateOf(peer).loss->why};
}

// Returns the peer that was lost first of those that have said no farewell.
std::optional<int> Control::FirstSilentLoss() {
  std::optional<int> first;
  for (int peer = 0; peer < ranks(); ++peer) {
    const PeerState& state = StateOf(peer);
    if (!state.loss || state.farewell) continue;
    if (!first || state.loss->since < StateOf(*first).loss->since) first = peer;
  }
  return first;
}

std::optional<Error> Control::FindSilentLoss() {
  auto silent = FirstSilentLoss();
  return silent ? FindLoss(*silent) : std::nullopt;
}

bool Control::End(const Error& why, const Error& for_others) {
  if (ended_) return false;
  ended_ = why;
  alarmed_.store(true, std::memory_order_release);
  SendFarewell(CodeFor(for_others.code), for_others.message);
  return true;
}

void Control::Release(const std::byte* data, size_t bytes) {
  for (PeerState& state : peers_) {
    if (state.channel != nullptr) state.channel->Release(data, bytes);
  }
}

void Control::Close() {
  for (PeerState& state : peers_) {
    if (state.channel != nullptr) state.channel->Close();
  }
}

void Control::SendLeave() { SendFarewell(kLeaves, NameOf(rank_) + " has left the group"); }

void Control::SendFarewell(uint8_t code, const std::string& text) {
  std::string sent = text.substr(0, kMaxFarewellBytes);
  const auto* bytes = reinterpret_cast<const std::byte*>(sent.data());
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_) continue;
    Send(peer, {.header = {.kind = FrameKind::kFarewell, .code = code},
                .owned = {bytes, bytes + sent.size()}});
  }
}

void Control::Flush(milliseconds patience) {
  TimePoint until = Now() + patience;
  for (PeerState& state : peers_) {
    if (state.channel == nullptr) continue;
    while (state.channel->has_queued() && Now() < until) {
      pollfd wait{.fd = state.channel->fd(), .events = POLLOUT, .revents = 0};
      poll(&wait, 1, 1);
      state.channel->Write();
    }
  }
}

}  // namespace rankrun::comm::stream
