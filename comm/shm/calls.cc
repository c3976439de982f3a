#include "comm/shm/calls.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace rankrun::comm {
namespace {

// Ranks that are on their way get this long to tell what they call.
constexpr std::chrono::milliseconds kForTheRest{400};

bool Alike(std::span<const std::size_t> blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [&](std::size_t b) { return b == blocks[0]; });
}

uint64_t InLine(std::span<const std::size_t> blocks) {
  if (blocks.empty()) return 0;
  return Alike(blocks) ? blocks[0] : LineBytes::kUneven;
}

}  // namespace

Calls::Calls(const Segment& segment, Waiter& waiter)
    : segment_(segment),
      waiter_(waiter),
      rank_(segment.rank()),
      world_size_(segment.world_size()) {}

bool Calls::Begin(const Call& call) {
  waiter_.Begin(call.timeout);
  if (HasFailed()) [[unlikely]]
    return false;
  // After a refusal the others may not be done with the collective before it.
  if (together_ != number_ && !CatchUp(number_)) return false;
  number_ += 1;
  operation_ = call.operation;
  fingerprint_ = call.fingerprint;
  Show(call.operation);
  return true;
}

// Else who comes late might find all it waits for, of ranks that have given up.
bool Calls::HasFailed() {
  if (!segment_.failed()) [[likely]]
    return false;
  error_ = segment_.ToldError();
  return error_.has_value();
}

void Calls::Show(const Operation& operation) {
  segment_.area(rank_).shown[number_ % kCallLines].operation = operation;
}

void Calls::ShowBytes(std::span<const std::size_t> gives, std::span<const std::size_t> wants) {
  bytes_ = {.gives = InLine(gives), .wants = InLine(wants)};
  std::memcpy(mine().data, &bytes_, sizeof bytes_);
  const auto table = segment_.table(rank_, number_ % kCallLines);
  if (bytes_.gives == LineBytes::kUneven) std::copy(gives.begin(), gives.end(), table.begin());
  if (bytes_.wants == LineBytes::kUneven) {
    std::copy(wants.begin(), wants.end(), table.begin() + world_size_);
  }
}

bool Calls::Await(uint64_t number) {
  const auto number_of = [&](int r) -> const std::atomic<uint64_t>& {
    return segment_.area(r).lines[number % kCallLines].number;
  };
  awaited_ = number;
  if (!waiter_.AwaitOthers(number_of, number, *this)) return false;
  together_ = number;
  return true;
}

bool Calls::CatchUp(uint64_t number) {
  catches_up_ = true;
  const bool together = Await(number);
  catches_up_ = false;
  return together;
}

bool Calls::AwaitAll() {
  if (!Await(number_)) return false;
  // A rank does not read its own line: it may have gone to who has read it.
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

Error Calls::TakeError() {
  if (error_) return *std::exchange(error_, std::nullopt);
  return waiter_.TakeError();
}

bool Calls::Refuse(const Call& call, const std::string& reason) {
  waiter_.Begin(call.timeout);
  if (HasFailed()) return false;
  // Who has come to the collective after it does not read the line any more.
  const bool may_be_read = together_ + kCallLines < number_ + 2;
  if (may_be_read && !CatchUp(number_ + 2 - kCallLines)) return false;
  number_ += 1;
  operation_ = call.operation;
  fingerprint_ = 0;
  Show(call.operation);
  char* text = segment_.area(rank_).shown[number_ % kCallLines].reason;
  const std::size_t bytes = std::min(reason.size(), kReasonBytes - 1);
  std::memcpy(text, reason.data(), bytes);
  text[bytes] = '\0';
  Publish();
  return true;
}

bool Calls::HasCome(int rank) const {
  return HasReached(segment_.area(rank).lines[awaited_ % kCallLines].number, awaited_);
}

uint64_t Calls::LastOf(int rank) const {
  uint64_t last = 0;
  for (const CallLine& each : segment_.area(rank).lines) {
    last = std::max(last, each.number.load(std::memory_order_acquire));
  }
  return last;
}

std::string Calls::Missing(Duration) const {
  std::vector<int> missing;
  std::string elsewhere;
  for (int r = 0; r < world_size_; ++r) {
    if (r == rank_ || HasCome(r)) continue;
    missing.push_back(r);
    const int one[] = {r};
    const uint64_t last = LastOf(r);
    elsewhere += "; the last call of " + segment_.NamesOf(one) + " was ";
    elsewhere += last == 0 ? "none" : Describe(segment_.area(r).shown[last % kCallLines].operation);
  }
  const char* have = missing.size() == 1 ? " has not come to " : " have not come to ";
  const ShownCall& awaited = segment_.area(rank_).shown[awaited_ % kCallLines];
  return segment_.NamesOf(missing) + have + Describe(awaited.operation) + elsewhere;
}

std::optional<Error> Calls::Doubt(Duration waited) const {
  if (catches_up_) return std::nullopt;
  if (auto refusal = Refusal()) return refusal;
  return waited < kForTheRest ? std::nullopt : Mismatch();
}

std::optional<Error> Calls::Refusal() const {
  for (int r = 0; r < world_size_; ++r) {
    if (!HasCome(r) || line(r).fingerprint != 0) continue;
    const ShownCall& shown = segment_.area(r).shown[number_ % kCallLines];
    const int one[] = {r};
    return Error{ErrorCode::kInvalid, segment_.NamesOf(one) + " refused " +
                                          Describe(shown.operation) + ": " + shown.reason};
  }
  return std::nullopt;
}

// Among those that have come.
std::optional<Error> Calls::Mismatch() const {
  std::map<uint64_t, std::vector<int>> callers;  // by fingerprint
  std::vector<uint64_t> in_order;
  std::vector<int> missing;
  for (int r = 0; r < world_size_; ++r) {
    if (!HasCome(r)) {
      missing.push_back(r);
      continue;
    }
    std::vector<int>& same = callers[line(r).fingerprint];
    if (same.empty()) in_order.push_back(line(r).fingerprint);
    same.push_back(r);
  }
  if (callers.size() < 2) return std::nullopt;
  std::string text;
  for (const uint64_t fingerprint : in_order) {
    const std::vector<int>& same = callers[fingerprint];
    const ShownCall& shown = segment_.area(same[0]).shown[number_ % kCallLines];
    text += (text.empty() ? "" : "; ") + segment_.NamesOf(same) + " called " +
            Describe(shown.operation);
  }
  if (!missing.empty()) text += "; " + segment_.NamesOf(missing) + " called nothing yet";
  return Error{ErrorCode::kMismatch, text};
}

LineBytes Calls::BytesOf(int rank) const {
  if (rank == rank_) return bytes_;
  LineBytes bytes;
  std::memcpy(&bytes, line(rank).data, sizeof bytes);
  return bytes;
}

uint64_t Calls::Gives(int from, int to) const {
  const uint64_t bytes = BytesOf(from).gives;
  if (bytes != LineBytes::kUneven) return bytes;
  return segment_.table(from, number_ % kCallLines)[static_cast<std::size_t>(to)];
}

uint64_t Calls::Wants(int by, int of) const {
  const uint64_t bytes = BytesOf(by).wants;
  if (bytes != LineBytes::kUneven) return bytes;
  return segment_.table(by, number_ % kCallLines)[static_cast<std::size_t>(world_size_ + of)];
}

bool Calls::HasParts(int rank, int root) const {
  return root == Operation::kNoRoot || operation_.kind == Operation::Kind::kGather || rank == root;
}

bool Calls::WantsParts(int rank, int root) const {
  return root == Operation::kNoRoot || operation_.kind != Operation::Kind::kGather || rank == root;
}

// Each gives as many bytes to each as all others do, and wants as many.
bool Calls::AreAlike(int root) const {
  const uint64_t bytes = HasParts(rank_, root) ? bytes_.gives : bytes_.wants;
  bool alike = bytes != LineBytes::kUneven;
  for (int r = 0; r < world_size_; ++r) {
    const LineBytes of = BytesOf(r);
    alike &= !HasParts(r, root) || of.gives == bytes;
    alike &= !WantsParts(r, root) || of.wants == bytes;
  }
  return alike;
}

bool Calls::PairAgrees(int from, int to) {
  const uint64_t gives = Gives(from, to);
  const uint64_t wants = Wants(to, from);
  if (gives == wants) [[likely]]
    return true;
  const int sender[] = {from};
  const int receiver[] = {to};
  error_ = waiter_.Fail(Error{ErrorCode::kMismatch, segment_.NamesOf(sender) + " sends " +
                                                        std::to_string(gives) + " bytes to " +
                                                        segment_.NamesOf(receiver) +
                                                        ", which wants " + std::to_string(wants)});
  return false;
}

// Those of all, whether they concern this rank or not, in one order: all ranks
// come to the same result.
bool Calls::BytesAgree(int root) {
  if (AreAlike(root)) [[likely]]
    return true;
  for (int from = 0; from < world_size_; ++from) {
    for (int to = 0; to < world_size_; ++to) {
      const bool meet = from != to && HasParts(from, root) && WantsParts(to, root);
      if (meet && !PairAgrees(from, to)) return false;
    }
  }
  return true;
}

}  // namespace rankrun::comm
