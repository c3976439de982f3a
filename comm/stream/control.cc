#include "comm/stream/control.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/roll_call.h"
#include "comm/core/loss.h"
#include "comm/stream/limits.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;

// Time after a loss for its reason: a farewell of another rank, or the agent's death message. On a
// busy machine the agent notices a death later than the kernel closes the connection.
constexpr milliseconds kFarewellPatience{20};
constexpr milliseconds kAgentPatience{100};

// Time in which the other ranks may send their calls after a difference, or answer a probe.
constexpr milliseconds kAnswersPatience{200};
constexpr milliseconds kAnswersEvery{1};

constexpr milliseconds kDecisionPatience{1000};  // for a peer to decide whether it gives up

constexpr uint8_t kLeaves = 0;  // code of a farewell without a failure; others: ErrorCode + 1

TimePoint Now() { return std::chrono::steady_clock::now(); }

// Returns the code that peers get: all others than those three become kSystem.
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
      peers_(config.global_ranks.size()),
      calls_(config.global_ranks, config.group_rank) {
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

// Follows a loss of the channel, or frames that wait for space.
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
      StateOf(peer).may_give_up = true;
      alarmed_.store(true, std::memory_order_release);
      FrameHeader answer = calls_.OwnLast();
      answer.kind = FrameKind::kAnswer;
      return Send(peer, {.header = answer});
    }
    case FrameKind::kAnswer:
      StateOf(peer).has_answered = true;
      StateOf(peer).answered_call = header.number;
      if (header.number > 0) NoteCall(peer, header);
      return;
    case FrameKind::kContinue:
      StateOf(peer).may_give_up = false;
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
                            .first_call = header.number,
                            .error = {ErrorCodeIn(header.code), std::move(text)}};
  alarmed_.store(true, std::memory_order_release);
}

Result<void> Control::Enter(const Operation& operation, uint64_t fingerprint) {
  MutexLock lock(mutex_);
  if (ended_) return *ended_;
  if (calls_.Enter(operation, fingerprint)) alarmed_.store(true, std::memory_order_release);
  return {};
}

// A farewell, or the loss of the connection, shows that the peer has given up.
std::optional<int> Control::UndecidedPeer() {
  for (int peer = 0; peer < ranks(); ++peer) {
    const PeerState& state = StateOf(peer);
    if (state.may_give_up && !state.farewell && !state.loss) return peer;
  }
  return std::nullopt;
}

Result<void> Control::Conclude(TimePoint deadline) {
  MutexLock lock(mutex_);
  for (PeerState& peer : peers_) {
    if (peer.channel != nullptr) peer.channel->RefreshFd();
  }
  Move();
  if (alarmed()) [[unlikely]] {
    // A peer has this time also if the time-out of this rank has passed.
    TimePoint until = std::max(deadline, Now() + kDecisionPatience);
    MoveUntil(until, [&]() NO_THREAD_SAFETY_ANALYSIS { return ended_ || !UndecidedPeer(); });
    if (ended_) return *ended_;
    if (auto failure = FirstFailure(calls_.last())) return *std::move(failure);
    if (calls_.difference()) return Error{ErrorCode::kMismatch, "the calls of the ranks differ"};
    if (auto peer = UndecidedPeer()) {
      return Error{ErrorCode::kTimeout, NameOf(*peer) + " may have given up, and does not answer"};
    }
  }
  concluded_ = calls_.last();
  return {};
}

void Control::NoteCall(int peer, const FrameHeader& header) {
  if (calls_.Note(peer, header)) alarmed_.store(true, std::memory_order_release);
}

void Control::NoteDifference(int peer, const FrameHeader& header) {
  calls_.NoteDifference(peer, header);
  alarmed_.store(true, std::memory_order_release);
}

void Control::SendCall(int peer) { SendCallOf(peer, calls_.last()); }

// Unless that was done, or there is no such call.
void Control::SendCallOf(int peer, uint64_t number) {
  const FrameHeader* own = calls_.Own(number);
  PeerState& state = StateOf(peer);
  if (own == nullptr || state.call_sent == number) return;
  state.call_sent = number;
  Send(peer, {.header = *own});
}

bool Control::KnowsAllCalls(uint64_t number) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank_ && calls_.Of(peer, number) == nullptr && !StateOf(peer).loss) return false;
  }
  return true;
}

template <typename Done>
void Control::MoveUntil(TimePoint until, const Done& done) {
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
  MoveUntil(Now() + kAnswersPatience,
            [&]() NO_THREAD_SAFETY_ANALYSIS { return KnowsAllCalls(number); });
  // A peer that ended the group first knew all calls; it may not have sent its own.
  auto failure = FirstFailure(kAllCalls);
  if (failure && failure->code == ErrorCode::kMismatch) return failure->message;
  return calls_.Describe(number);
}

void Control::Probe() {
  probe_until_ = Now() + kAnswersPatience;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_) continue;
    StateOf(peer).has_answered = false;
    Send(peer, {.header = {.kind = FrameKind::kProbe}});
  }
}

bool Control::IsProbeOver() { return SilentPeers().empty() || Now() >= probe_until_; }

std::optional<std::string> Control::DescribeSilent() {
  std::vector<int> silent = SilentPeers();
  if (!silent.empty()) return "; no answer from " + RanksInWords(silent);
  const uint64_t last = calls_.last();
  bool all_are_in = std::all_of(peers_.begin(), peers_.end(), [last](const PeerState& peer) {
    return peer.channel == nullptr || (!peer.loss && !peer.farewell && peer.answered_call >= last);
  });
  return all_are_in ? std::nullopt : std::optional(std::string());
}

void Control::Continue() {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank_) Send(peer, {.header = {.kind = FrameKind::kContinue}});
  }
}

std::vector<int> Control::SilentPeers() {
  std::vector<int> silent;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_ || StateOf(peer).has_answered || StateOf(peer).loss) continue;
    silent.push_back(global_ranks_[static_cast<size_t>(peer)]);
  }
  return silent;
}

void Control::Lose(int peer, const std::string& why) {
  PeerState& state = StateOf(peer);
  if (state.loss) return;
  state.loss = Loss{.since = Now(), .why = why};
  alarmed_.store(true, std::memory_order_release);
}

// Returns the first error that a peer has reported in a farewell, in that call or before.
std::optional<Error> Control::FirstFailure(uint64_t call) {
  for (const PeerState& state : peers_) {
    if (!state.farewell || state.farewell->leaves) continue;
    if (state.farewell->first_call <= call) return state.farewell->error;
  }
  return std::nullopt;
}

std::optional<Error> Control::FindEnd(TimePoint wait_began, uint64_t call) {
  if (ended_) return ended_;
  if (auto failure = FirstFailure(call)) return failure;
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
  if (!silent || Now() < StateOf(*silent).loss->since + kUnawaitedLossPatience) return std::nullopt;
  return FindLoss(*silent);
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
    Send(peer, {.header = {.kind = FrameKind::kFarewell, .code = code, .number = concluded_ + 1},
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
