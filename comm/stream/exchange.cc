#include "comm/stream/exchange.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "comm/core/time_left.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;

// Blocks from this size on are split among all streams of a pair.
constexpr size_t kMinStripedBytes = size_t{256} << 10;

// Parts of a block begin at multiples of this, so that no element is split.
constexpr size_t kAlignment = 64;

// A rank that waits longer than this sends its call to the awaited peer, because
// ranks that wait for each other see no frame of the other's call.
constexpr milliseconds kSlow{300};

// Time after a time-out for data of peers that are all in the call.
constexpr milliseconds kExtension{500};

// Polls of a rank whose peers seem to share its processor, and the yields after
// which they seem to.
constexpr int kMinPolls = 8;
constexpr int kPromptYields = 4;

// Rounds of polling between two looks at the control connections.
constexpr int kRoundsPerLook = 16;

TimePoint Now() { return std::chrono::steady_clock::now(); }

struct Part {
  size_t offset;
  size_t bytes;
};

// Returns the part of a block that stream `index` of `count` carries.
Part PartOf(size_t bytes, size_t index, size_t count) {
  size_t each = (bytes / count + kAlignment - 1) / kAlignment * kAlignment;
  size_t begin = std::min(bytes, index * each);
  return {begin, std::min(bytes - begin, each)};
}

// Returns how many of the streams a block of this size uses.
size_t StreamsFor(size_t bytes, size_t streams) { return bytes < kMinStripedBytes ? 1 : streams; }

}  // namespace

StreamExchange::StreamExchange(const BackendConfig& config, std::vector<Streams> streams,
                               Control& control, const Patience& patience)
    : rank_(config.group_rank),
      deaths_(config.deaths),
      control_(control),
      patience_(patience),
      polls_(patience.polls),
      streams_(std::move(streams)) {}

void StreamExchange::Begin(const Call& call) {
  header_ = HeaderOf(FrameKind::kData, call.operation, call.fingerprint);
  began_ = Now();
  deadline_ = began_ + call.timeout;
  next_compare_ = began_ + kSlow;
  difference_.reset();
  asked_at_.reset();
  is_extended_ = false;
}

Result<void> StreamExchange::Exchange(const Outgoing* outgoing, const Incoming* incoming) {
  {
    MutexLock lock(mutex_);
    BeginStep(outgoing, incoming);
  }
  for (int round = 0;;) {
    {
      MutexLock lock(mutex_);
      if (closed_) break;
      bool moved = MoveStep();
      if (moved && round > 0) AdaptPolls(round);
      if (moved && asked_at_) Continue();
      if (StepIsDone()) return {};
      round = moved ? 0 : round + 1;
    }
    if (round == 0) continue;
    if (auto end = RestOrEnd(round)) return *std::move(end);
  }
  MutexLock lock(control_.mutex());
  return *control_.ended();
}

// Tells the peers, which this rank has asked after its time-out, that data has arrived.
void StreamExchange::Continue() {
  asked_at_.reset();
  MutexLock lock(control_.mutex());
  control_.Continue();
}

// Polls less if the peer came as soon as this rank yielded: they share a
// processor then. `round`: rounds without data before this one.
void StreamExchange::AdaptPolls(int round) {
  bool came_by_yield = round >= polls_ && round < polls_ + kPromptYields;
  polls_ = came_by_yield ? std::max(polls_ / 2, std::min(kMinPolls, patience_.polls))
                         : std::min(2 * polls_, patience_.polls);
}

void StreamExchange::BeginStep(const Outgoing* outgoing, const Incoming* incoming) {
  outgoing_ = outgoing;
  incoming_ = incoming;
  closed_peer_.reset();
  if (incoming != nullptr) {
    Streams& streams = StreamsTo(incoming->peer);
    size_t used = StreamsFor(incoming->data.bytes, streams.size());
    for (size_t i = 0; i < used; ++i) {
      Part part = PartOf(incoming->data.bytes, i, used);
      streams[i].BeginReceive(*incoming, part.offset, part.bytes);
    }
  }
  if (outgoing == nullptr) return;
  Streams& streams = StreamsTo(outgoing->peer);
  size_t used = StreamsFor(outgoing->data.bytes, streams.size());
  header_.tag = outgoing->data.bytes;
  for (size_t i = 0; i < used; ++i) {
    Part part = PartOf(outgoing->data.bytes, i, used);
    streams[i].BeginSend(header_, {outgoing->data.data + part.offset, part.bytes});
  }
}

bool StreamExchange::MoveStep() {
  bool sent = outgoing_ != nullptr && SendSome();
  return (incoming_ != nullptr && ReceiveSome()) || sent;
}

bool StreamExchange::SendSome() {
  bool moved = false;
  for (Stream& stream : StreamsTo(outgoing_->peer)) {
    if (!stream.sending()) continue;
    Stream::Progress progress = stream.Send();
    moved = moved || progress == Stream::Progress::kDone || progress == Stream::Progress::kSome;
    if (progress == Stream::Progress::kClosed) NoteLoss(outgoing_->peer, stream);
  }
  return moved;
}

bool StreamExchange::ReceiveSome() {
  bool moved = false;
  for (Stream& stream : StreamsTo(incoming_->peer)) {
    if (!stream.receiving() || stream.is_complete()) continue;
    Stream::Progress progress = stream.Receive();
    if (stream.header() != nullptr && !stream.is_accepted()) {
      CheckHeader(stream);
      if (!stream.is_accepted()) continue;
      progress = stream.Receive();
    }
    moved = moved || progress == Stream::Progress::kDone || progress == Stream::Progress::kSome;
    if (progress == Stream::Progress::kClosed) NoteLoss(incoming_->peer, stream);
  }
  return moved;
}

void StreamExchange::NoteLoss(int peer, const Stream& stream) {
  closed_peer_ = peer;
  MutexLock lock(control_.mutex());
  control_.Lose(peer, stream.closed_by());
}

// Lets the data of a frame through if it belongs to this call. Otherwise the
// stream stays as it is, because the collective will fail.
void StreamExchange::CheckHeader(Stream& stream) {
  const FrameHeader& header = *stream.header();
  bool same_call = header.kind == FrameKind::kData && header.number == header_.number &&
                   header.fingerprint == header_.fingerprint;
  if (same_call && header.tag == incoming_->data.bytes && header.bytes == stream.bytes()) {
    stream.AcceptHeader();
    return;
  }
  if (difference_) return;
  difference_ = Error{ErrorCode::kMismatch, DescribeDifference(header)};
  if (same_call) return;
  MutexLock lock(control_.mutex());
  control_.NoteDifference(incoming_->peer, header);
}

std::string StreamExchange::DescribeDifference(const FrameHeader& header) const {
  const std::string peer = control_.NameOf(incoming_->peer);
  const std::string own = control_.NameOf(rank_);
  if (header.fingerprint == header_.fingerprint) {
    return peer + " sends " + std::to_string(header.tag) + " bytes to " + own + ", which expects " +
           std::to_string(incoming_->data.bytes);
  }
  return peer + " called " + Describe(OperationIn(header)) + "; " + own + " called " +
         Describe(OperationIn(header_));
}

bool StreamExchange::StepIsDone() {
  if (outgoing_ != nullptr) {
    for (const Stream& stream : StreamsTo(outgoing_->peer)) {
      if (stream.sending()) return false;
    }
  }
  if (incoming_ == nullptr) return true;
  for (const Stream& stream : StreamsTo(incoming_->peer)) {
    if (stream.receiving() && !stream.is_complete()) return false;
  }
  for (Stream& stream : StreamsTo(incoming_->peer)) {
    if (stream.receiving()) stream.FinishReceive();
  }
  return true;
}

// Called when nothing moved: waits a little, or returns the error that ends the
// collective.
std::optional<Error> StreamExchange::RestOrEnd(int round) {
  if (difference_ || control_.alarmed()) {
    control_.TryMove();
    if (auto end = FindEnd()) return WithOwnTimeOut(*std::move(end));
  } else if (deaths_.has_death()) {
    return deaths_.ErrorSince(began_);
  }
  if (round < polls_) {
    if (round % kRoundsPerLook == kRoundsPerLook - 1) control_.TryMove();
    Sleep(milliseconds(0));
    return std::nullopt;
  }
  if (round < polls_ + patience_.yields) {
    sched_yield();
    return std::nullopt;
  }
  TimePoint now = Now();
  if (now >= deadline_) {
    if (auto end = TimeOut()) return end;
  }
  Sleep(std::min(TimeLeft(deadline_), Patience::kSlice));
  const int awaited = AwaitedPeer();
  MutexLock lock(control_.mutex());
  control_.Move();
  if (now < next_compare_) return std::nullopt;
  next_compare_ = TimePoint::max();
  control_.SendCall(awaited);
  return std::nullopt;
}

// Sleeps until a stream of this step or the control connections have news, or
// for `limit`. Polls the streams only if that is 0.
void StreamExchange::Sleep(milliseconds limit) {
  waits_.clear();
  if (limit > milliseconds(0))
    waits_.push_back({.fd = control_.fd(), .events = POLLIN, .revents = 0});
  {
    MutexLock lock(mutex_);
    AddWaits();
  }
  poll(waits_.data(), waits_.size(), static_cast<int>(limit.count()));
}

void StreamExchange::AddWaits() {
  auto add = [&](const Stream& stream, int events) {
    if (!stream.closed_by().empty()) return;
    waits_.push_back({.fd = stream.fd(), .events = static_cast<short>(events), .revents = 0});
  };
  if (outgoing_ != nullptr) {
    for (const Stream& stream : StreamsTo(outgoing_->peer)) {
      if (stream.sending()) add(stream, POLLOUT);
    }
  }
  if (incoming_ == nullptr || difference_) return;
  for (const Stream& stream : StreamsTo(incoming_->peer)) {
    if (stream.receiving() && !stream.is_complete()) add(stream, POLLIN);
  }
}

std::optional<Error> StreamExchange::FindEnd() {
  std::optional<uint64_t> number;
  {
    MutexLock lock(control_.mutex());
    if (control_.ended()) return control_.ended();
    number = control_.difference();
  }
  if (number) {  // of the calls, so all ranks' calls belong in the text
    std::string calls = control_.CompareCalls(*number);
    if (!calls.empty()) return Error{ErrorCode::kMismatch, calls};
  }
  if (difference_) return difference_;
  MutexLock lock(control_.mutex());
  if (auto end = control_.FindEnd(began_, header_.number)) return end;
  if (auto loss = closed_peer_ ? control_.FindLoss(*closed_peer_) : std::nullopt) return loss;
  return control_.FindSilentLoss();
}

// Returns the peer that this step waits for.
int StreamExchange::AwaitedPeer() {
  MutexLock lock(mutex_);
  if (incoming_ == nullptr || outgoing_ == nullptr) {
    return incoming_ != nullptr ? incoming_->peer : outgoing_->peer;
  }
  const Streams& streams = StreamsTo(incoming_->peer);
  bool all_received = std::all_of(streams.begin(), streams.end(), [](const Stream& stream) {
    return !stream.receiving() || stream.is_complete();
  });
  return all_received ? outgoing_->peer : incoming_->peer;
}

// After its own time-out a rank reports that time-out, also if a peer has given up first.
Error StreamExchange::WithOwnTimeOut(Error end) {
  if (!asked_at_ || end.code != ErrorCode::kPeerLost) return end;
  const int awaited = AwaitedPeer();
  MutexLock lock(control_.mutex());
  return TimedOut(awaited);
}

// Asks the peers after the time-out of this rank, and continues this step meanwhile: peers that
// have sent their part may have their results. Returns the time-out once nothing can come any more.
// If all peers are in this call, none is missing, and this rank waits for a short time longer.
std::optional<Error> StreamExchange::TimeOut() {
  const int awaited = AwaitedPeer();
  MutexLock lock(control_.mutex());
  if (!asked_at_) {
    asked_at_ = Now();
    control_.Probe();
  }
  if (!control_.IsProbeOver()) return std::nullopt;
  auto silent = control_.DescribeSilent();
  if (silent || is_extended_) return TimedOut(awaited);
  is_extended_ = true;
  deadline_ = Now() + kExtension;
  asked_at_.reset();
  control_.Continue();
  return std::nullopt;
}

Error StreamExchange::TimedOut(int awaited) {
  auto waited = std::chrono::duration_cast<milliseconds>(*asked_at_ - began_);
  std::string text = "timed out after " + std::to_string(waited.count()) + " ms, waiting for " +
                     control_.NameOf(awaited);
  return {ErrorCode::kTimeout, text + control_.DescribeSilent().value_or("")};
}

// Every frame without data describes the sender's call.
Result<void> StreamExchange::CompareAllCalls() {
  std::byte none{};
  int ranks = control_.ranks();
  for (int k = 1; k < ranks; ++k) {
    Outgoing outgoing{.peer = (rank_ + k) % ranks, .data = {&none, 0}};
    if (auto ok = Exchange(&outgoing, nullptr); !ok) return ok;
  }
  for (int k = 1; k < ranks; ++k) {
    Incoming incoming{.peer = (rank_ + ranks - k) % ranks, .data = {&none, 0}};
    if (auto ok = Exchange(nullptr, &incoming); !ok) return ok;
  }
  return {};
}

void StreamExchange::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (Streams& streams : streams_) {
    for (Stream& stream : streams) stream.Close();
  }
}

}  // namespace rankrun::comm::stream
