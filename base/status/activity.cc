#include "base/status/activity.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/fork_count.h"
#include "base/printable.h"
#include "base/status/operation_names.h"
#include "base/status/shared_field.h"
#include "base/status/status_page.h"
#include "base/status/ticks.h"

namespace rankrun {
namespace {

using shared::Get;
using shared::Set;
using std::memory_order_relaxed;

constexpr int kTries = 1000;

// Keeps the sequence odd while `write` runs.
template <typename Write>
void Change(uint64_t& sequence, Write write) {
  uint64_t before = std::atomic_ref<uint64_t>(sequence).load(memory_order_relaxed) & ~1ULL;
  std::atomic_ref<uint64_t>(sequence).store(before + 1, memory_order_relaxed);
  write();
  Set(sequence, before + 2);
}

// Returns whether `read` has seen a consistent state within kTries attempts.
template <typename Read>
bool ReadAtRest(const uint64_t& sequence, Read read) {
  for (int i = 0; i < kTries; ++i) {
    uint64_t before = Get(sequence);
    if (before % 2 != 0) continue;
    read();
    if (Get(sequence) == before) return true;
  }
  return false;
}

// Writes byte by byte because a reader in another process may read meanwhile.
void SetText(char* to, std::string_view text, size_t most) {
  size_t size = std::min(text.size(), most);
  while (size < text.size() && size > 0 && (text[size] & 0xC0) == 0x80) --size;
  for (size_t i = 0; i < size; ++i) Set(to[i], text[i]);
  Set(to[size], '\0');
}

std::string TextOf(const char* from, size_t most) {
  std::string text;
  for (size_t i = 0; i < most; ++i) {
    const char c = Get(from[i]);
    if (c == '\0') break;
    text += c;
  }
  return OneLine(text, most);
}

bool Claim(uint32_t& in_use) {
  uint32_t free = 0;
  return std::atomic_ref<uint32_t>(in_use).compare_exchange_strong(free, 1);
}

FlightGroup* FlightGroupOf(const StatusPage& page, size_t slot) {
  FlightGroup* groups = page.flight_groups();
  return groups != nullptr && slot < kFlightGroups ? &groups[slot] : nullptr;
}

GroupSlot* ClaimGroup(ActivityTable& table) {
  for (uint32_t i = 0; i < kGroupSlots; ++i) {
    if (!Claim(table.groups[i].in_use)) continue;
    std::atomic_ref<uint32_t> end(table.groups_end);
    uint32_t seen = end.load();
    while (seen < i + 1 && !end.compare_exchange_weak(seen, i + 1)) {
    }
    return &table.groups[i];
  }
  return nullptr;
}

void SetRecord(GroupSlot& slot, const ActivityRecord& record, uint64_t entered,
               uint64_t flags = 0) {
  Set(slot.numbers, PackedNumbers(record) | flags);
  Set(slot.number, record.number);
  Set(slot.count, record.count);
  Set(slot.fingerprint, record.fingerprint);
  Set(slot.entered, entered);
}

ActivityRecord RecordOf(const GroupSlot& slot) {
  return Unpacked(Get(slot.numbers), Get(slot.number), Get(slot.count), Get(slot.fingerprint));
}

// Returns nothing if the slot is free or keeps changing.
std::optional<GroupActivity> Read(const GroupSlot& slot, const TickClock& clock) {
  GroupActivity group;
  bool in_use = false;
  bool is_in_background = false;
  bool is_at_rest = ReadAtRest(slot.sequence, [&] {
    in_use = Get(slot.in_use) != 0;
    group.is_under_way = Get(slot.finished) != Get(slot.sequence);
    group.name = TextOf(slot.name, kGroupNameBytes);
    group.size = Get(slot.size);
    group.last = RecordOf(slot);
    group.completed = Get(slot.completed);
    group.since_entered = clock.Since(Get(slot.entered));
    is_in_background = (Get(slot.numbers) & kInBackground) != 0;
  });
  if (!is_at_rest || !in_use) return std::nullopt;
  if (is_in_background) {
    const uint64_t waiting = Get(slot.waiting);
    const Duration waited = waiting == 0 ? Duration::zero() : clock.Since(waiting);
    group.unawaited = std::max(group.since_entered - waited, Duration::zero());
  }
  group.is_under_way = group.is_under_way && group.last.kind != 0;
  return group;
}

}  // namespace

std::string DescribeOperation(const ActivityRecord& record) {
  constexpr uint8_t kBroadcast = 3;
  constexpr uint8_t kScatter = 6;
  constexpr uint8_t kBarrier = 9;
  constexpr uint8_t kRecv = 11;
  std::string text = PrefixOf(record.part_of) + NameOfCollective(record.kind);
  if (record.number > 0) text += " #" + std::to_string(record.number);
  if (record.kind == kBarrier || record.kind == kMonitoredBarrierKind) return text;
  text += " (" + std::to_string(record.count) + " x " + NameOfDType(record.dtype);
  if (IsReduction(record.kind)) text += std::string(", ") + NameOfReduceOp(record.op);
  if (record.root < 0) return text + ")";
  bool from = record.kind == kBroadcast || record.kind == kScatter || record.kind == kRecv;
  return text + (from ? " from rank " : " to rank ") + std::to_string(record.root) + ")";
}

Activity::Activity(const StatusPage* page, std::string_view group_name, int size) {
  if (page == nullptr) return;
  CountForks();
  forks_ = ForkCount();
  ActivityTable& table = page->activities();
  slot_ = ClaimGroup(table);
  if (slot_ == nullptr) return;
  recorder_ = FlightRecorder(FlightGroupOf(*page, static_cast<size_t>(slot_ - table.groups)));
  Change(slot_->sequence, [&] {
    SetText(slot_->name, group_name, kGroupNameBytes);
    Set(slot_->size, size);
    SetRecord(*slot_, {}, 0);
    Set(slot_->completed, uint64_t{0});
    Set(slot_->waiting, uint64_t{0});
  });
}

Activity::~Activity() {
  if (slot_ == nullptr || forks_ != ForkCount()) return;
  Complete(false);
  Set(slot_->in_use, 0U);
}

void Activity::Enter(const ActivityRecord& record, Recording recording, Caller caller,
                     uint64_t now) {
  if (slot_ == nullptr || forks_ != ForkCount()) return;
  const uint64_t flags = caller == Caller::kWaits ? 0 : kInBackground;
  Change(slot_->sequence, [&] { SetRecord(*slot_, record, now, flags); });
  if (recording == Recording::kYes) recorder_.BeginCollective(record, now);
}

void Activity::Complete(bool has_succeeded) {
  if (slot_ == nullptr || forks_ != ForkCount()) return;
  recorder_.EndCollective(has_succeeded);
  // No other thread writes, so both still have this thread's values.
  if (slot_->number > 0) Set(slot_->completed, slot_->number);
  Set(slot_->finished, slot_->sequence);
}

void Activity::ShowWaiting(bool waits) {
  if (slot_ == nullptr || forks_ != ForkCount()) return;
  Set(slot_->waiting, waits ? Ticks() : uint64_t{0});
}

LibraryUse::LibraryUse(const StatusPage* page) {
  if (page == nullptr) return;
  CountForks();
  forks_ = ForkCount();
  users_ = &page->activities().users;
  std::atomic_ref<uint32_t>(*users_).fetch_add(1);
}

LibraryUse::~LibraryUse() {
  if (users_ != nullptr && forks_ == ForkCount()) std::atomic_ref<uint32_t>(*users_).fetch_sub(1);
}

bool ReadLibraryUse(const StatusPage& page) { return Get(page.activities().users) != 0; }

bool IsBreakpointWait(std::string_view what) {
  return what.starts_with(kDebuggerWait) || what.starts_with(kUserWait) ||
         what.starts_with(kBreakpointWait);
}

Awaited::Awaited(const StatusPage* page, std::string_view what, int global_rank) {
  if (page == nullptr || !Claim(page->activities().awaited.in_use)) return;
  slot_ = &page->activities().awaited;
  Change(slot_->sequence, [&] {
    Set(slot_->since, Ticks());
    Set(slot_->rank_plus_1, static_cast<uint32_t>(global_rank + 1));
    SetText(slot_->what, what, kAwaitedBytes);
  });
}

Awaited::~Awaited() {
  if (slot_ == nullptr) return;
  // Clear the text first, so that the next owner is never shown with it.
  Change(slot_->sequence, [&] { Set(slot_->what[0], '\0'); });
  Set(slot_->in_use, 0U);
}

std::vector<GroupActivity> ReadGroups(const StatusPage& page) {
  const ActivityTable& table = page.activities();
  TickClock clock = page.tick_clock();
  std::vector<GroupActivity> groups;
  size_t end = std::min<size_t>(Get(table.groups_end), kGroupSlots);
  for (size_t i = 0; i < end; ++i) {
    if (auto group = Read(table.groups[i], clock)) groups.push_back(*std::move(group));
  }
  return groups;
}

AwaitedActivity ReadAwaited(const StatusPage& page) {
  const AwaitedSlot& slot = page.activities().awaited;
  AwaitedActivity awaited;
  bool is_at_rest = ReadAtRest(slot.sequence, [&] {
    awaited.what = Get(slot.in_use) != 0 ? TextOf(slot.what, kAwaitedBytes) : "";
    awaited.global_rank = static_cast<int>(Get(slot.rank_plus_1) - 1);
    awaited.lasted = page.tick_clock().Since(Get(slot.since));
  });
  if (!is_at_rest || awaited.what.empty()) return {};
  return awaited;
}

WorkerActivity ReadActivity(const StatusPage& page) {
  AwaitedActivity awaited = ReadAwaited(page);
  if (!awaited.what.empty()) {
    return {.what = "waiting for " + awaited.what, .lasted = awaited.lasted};
  }
  std::vector<GroupActivity> groups = ReadGroups(page);
  const GroupActivity* newest = nullptr;
  for (const GroupActivity& group : groups) {
    if (!group.is_under_way) continue;
    if (newest == nullptr || group.since_entered < newest->since_entered) newest = &group;
  }
  if (newest == nullptr) return {};
  return {.what = "in " + DescribeOperation(newest->last) + " of " + newest->name,
          .lasted = newest->since_entered};
}

}  // namespace rankrun
