#include "comm/shm/call_rendezvous.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace rankrun::comm::shm {
namespace {

// Delay before a mismatch is reported while ranks are missing, so that late
// ranks can still add their call to the text.
constexpr std::chrono::milliseconds kMismatchDelay{400};

bool AreEqual(std::span<const size_t> blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [&](size_t b) { return b == blocks[0]; });
}

uint64_t InLine(std::span<const size_t> blocks) {
  if (blocks.empty()) return 0;
  return AreEqual(blocks) ? blocks[0] : LineBytes::kUneven;
}

}  // namespace

CallRendezvous::CallRendezvous(const Segment& segment, Waiter& waiter, size_t buffer_bytes)
    : segment_(segment),
      waiter_(waiter),
      buffer_bytes_(buffer_bytes),
      rank_(segment.rank()),
      world_size_(segment.world_size()) {}

bool CallRendezvous::Begin(const Call& call) {
  waiter_.Begin(call);
  if (HasFailed(call)) [[unlikely]]
    return false;
  // After a refusal other ranks may still be in the collective before it.
  if (all_called_ != number_ && !CatchUp(number_)) return false;
  number_ += 1;
  first_number_ = number_;
  operation_ = call.operation;
  fingerprint_ = call.fingerprint;
  WriteDetails(call.operation);
  return true;
}

// Returns whether the group has failed. Without this check a late rank could
// find the lines of all ranks although those have given up.
bool CallRendezvous::HasFailed(const Call& call) {
  if (!segment_.failed()) [[likely]]
    return false;
  error_ = segment_.errors().PublishedIn(call.operation.number);
  return error_.has_value();
}

void CallRendezvous::WriteDetails(const Operation& operation) {
  segment_.area(rank_).details[number_ % kCallLines].operation = operation;
}

void CallRendezvous::AnnounceBytes(std::span<const size_t> sends, std::span<const size_t> expects) {
  bytes_ = {.sends = InLine(sends), .expects = InLine(expects)};
  std::memcpy(mine().data, &bytes_, sizeof bytes_);
  auto table = segment_.table(rank_, number_ % kCallLines);
  if (bytes_.sends == LineBytes::kUneven) std::copy(sends.begin(), sends.end(), table.begin());
  if (bytes_.expects == LineBytes::kUneven) {
    std::copy(expects.begin(), expects.end(), table.begin() + world_size_);
  }
}

bool CallRendezvous::Await(uint64_t number) {
  auto number_of = [&](int r) -> const std::atomic<uint64_t>& {
    return segment_.area(r).lines[number % kCallLines].number;
  };
  awaited_ = number;
  if (!waiter_.AwaitOthers(number_of, number, *this)) return false;
  all_called_ = number;
  return true;
}

bool CallRendezvous::CatchUp(uint64_t number) {
  catching_up_ = true;
  bool together = Await(number);
  catching_up_ = false;
  return together;
}

bool CallRendezvous::AwaitAll() {
  if (!Await(number_)) return false;
  // Skips this rank's line: reading it could pull its cache line back from a
  // reader.
  bool same = true;
  for (int r = 0; r < world_size_; ++r) same &= r == rank_ || line(r).fingerprint == fingerprint_;
  if (same) [[likely]]
    return true;
  if (auto refusal = Refusal()) {
    error_ = std::move(refusal);
  } else {
    error_ = waiter_.Fail(*Mismatch());
  }
  return false;
}

Error CallRendezvous::TakeError() {
  if (error_) return *std::exchange(error_, std::nullopt);
  return waiter_.TakeError();
}

bool CallRendezvous::Refuse(const Call& call, const std::string& reason) {
  waiter_.Begin(call);
  if (HasFailed(call)) return false;
  // A rank that has called the collective after it no longer reads the line.
  bool may_be_read = all_called_ + kCallLines < number_ + 2;
  if (may_be_read && !CatchUp(number_ + 2 - kCallLines)) return false;
  number_ += 1;
  operation_ = call.operation;
  fingerprint_ = 0;
  WriteDetails(call.operation);
  char* text = segment_.area(rank_).details[number_ % kCallLines].reason;
  size_t bytes = std::min(reason.size(), kReasonBytes - 1);
  std::memcpy(text, reason.data(), bytes);
  text[bytes] = '\0';
  Publish();
  return true;
}

bool CallRendezvous::HasCalled(int rank) const {
  return HasReached(segment_.area(rank).lines[awaited_ % kCallLines].number, awaited_);
}

uint64_t CallRendezvous::LastOf(int rank) const {
  uint64_t last = 0;
  for (const CallLine& each : segment_.area(rank).lines) {
    last = std::max(last, each.number.load(std::memory_order_acquire));
  }
  return last;
}

std::string CallRendezvous::Missing(Duration) const {
  std::vector<int> missing;
  std::string elsewhere;
  for (int r = 0; r < world_size_; ++r) {
    if (r == rank_ || HasCalled(r)) continue;
    missing.push_back(r);
    const int one[] = {r};
    uint64_t last = LastOf(r);
    elsewhere += "; the last call of " + segment_.NamesOf(one) + " was ";
    elsewhere +=
        last == 0 ? "none" : Describe(segment_.area(r).details[last % kCallLines].operation);
  }
  const char* have = missing.size() == 1 ? " has not called " : " have not called ";
  const CallDetails& awaited = segment_.area(rank_).details[awaited_ % kCallLines];
  return segment_.NamesOf(missing) + have + Describe(awaited.operation) + elsewhere;
}

std::optional<Error> CallRendezvous::CheckFailure(Duration waited) const {
  if (catching_up_) return std::nullopt;
  if (auto refusal = Refusal()) return refusal;
  return waited < kMismatchDelay ? std::nullopt : Mismatch();
}

// Returns the refusal of a rank, also that of the first part of a call in two parts.
std::optional<Error> CallRendezvous::Refusal() const {
  for (uint64_t number = first_number_; number <= number_; ++number) {
    for (int r = 0; r < world_size_; ++r) {
      const CallLine& refused = segment_.area(r).lines[number % kCallLines];
      if (!HasReached(refused.number, number) || refused.fingerprint != 0) continue;
      const CallDetails& details = segment_.area(r).details[number % kCallLines];
      const int one[] = {r};
      return Error{ErrorCode::kInvalid, segment_.NamesOf(one) + " refused " +
                                            Describe(details.operation) + ": " +
                                            TextOf(details.reason)};
    }
  }
  return std::nullopt;
}

// Compares the calls of the ranks that have called.
std::optional<Error> CallRendezvous::Mismatch() const {
  std::map<uint64_t, std::vector<int>> callers;  // by fingerprint
  std::vector<uint64_t> in_order;
  std::vector<int> missing;
  for (int r = 0; r < world_size_; ++r) {
    if (!HasCalled(r)) {
      missing.push_back(r);
      continue;
    }
    std::vector<int>& same = callers[line(r).fingerprint];
    if (same.empty()) in_order.push_back(line(r).fingerprint);
    same.push_back(r);
  }
  if (callers.size() < 2) return std::nullopt;
  std::string text;
  for (uint64_t fingerprint : in_order) {
    const std::vector<int>& same = callers[fingerprint];
    const CallDetails& details = segment_.area(same[0]).details[number_ % kCallLines];
    text += (text.empty() ? "" : "; ") + segment_.NamesOf(same) + " called " +
            Describe(details.operation);
  }
  if (!missing.empty()) text += "; " + segment_.NamesOf(missing) + " called nothing yet";
  return Error{ErrorCode::kMismatch, text};
}

LineBytes CallRendezvous::BytesOf(int rank) const {
  if (rank == rank_) return bytes_;
  LineBytes bytes;
  std::memcpy(&bytes, line(rank).data, sizeof bytes);
  return bytes;
}

uint64_t CallRendezvous::BytesSent(int from, int to) const {
  uint64_t bytes = BytesOf(from).sends;
  if (bytes != LineBytes::kUneven) return bytes;
  return segment_.table(from, number_ % kCallLines)[static_cast<size_t>(to)];
}

uint64_t CallRendezvous::BytesExpected(int by, int of) const {
  uint64_t bytes = BytesOf(by).expects;
  if (bytes != LineBytes::kUneven) return bytes;
  return segment_.table(by, number_ % kCallLines)[static_cast<size_t>(world_size_ + of)];
}

bool CallRendezvous::SendsParts(int rank, int root) const {
  return root == Operation::kNoRoot || operation_.kind == Operation::Kind::kGather || rank == root;
}

bool CallRendezvous::ReceivesParts(int rank, int root) const {
  return root == Operation::kNoRoot || operation_.kind != Operation::Kind::kGather || rank == root;
}

// Returns whether all ranks send and expect blocks of one size.
bool CallRendezvous::HasUniformBytes(int root) const {
  uint64_t bytes = SendsParts(rank_, root) ? bytes_.sends : bytes_.expects;
  bool alike = bytes != LineBytes::kUneven;
  for (int r = 0; r < world_size_; ++r) {
    LineBytes of = BytesOf(r);
    alike &= !SendsParts(r, root) || of.sends == bytes;
    alike &= !ReceivesParts(r, root) || of.expects == bytes;
  }
  return alike;
}

bool CallRendezvous::PairAgrees(int from, int to) {
  uint64_t sends = BytesSent(from, to);
  uint64_t expects = BytesExpected(to, from);
  if (sends == expects) [[likely]]
    return true;
  const int sender[] = {from};
  const int receiver[] = {to};
  error_ = waiter_.Fail(
      Error{ErrorCode::kMismatch, segment_.NamesOf(sender) + " sends " + std::to_string(sends) +
                                      " bytes to " + segment_.NamesOf(receiver) +
                                      ", which expects " + std::to_string(expects)});
  return false;
}

// Compares the sizes of all pairs in one order, including pairs without this
// rank, so that all ranks report the same error.
bool CallRendezvous::BytesAgree(int root) {
  if (HasUniformBytes(root)) [[likely]]
    return true;
  for (int from = 0; from < world_size_; ++from) {
    for (int to = 0; to < world_size_; ++to) {
      bool meet = from != to && SendsParts(from, root) && ReceivesParts(to, root);
      if (meet && !PairAgrees(from, to)) return false;
    }
  }
  return true;
}

}  // namespace rankrun::comm::shm
