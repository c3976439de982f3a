#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/ticks.h"
#include "base/trace/trace_format.h"

namespace rankrun {

// The process that writes a trace.
struct TraceOwner {
  int rank;
  int attempt;
  std::string run_id;
};

// Returns the folder of a job below the folder of all traces: "<folder>/<run id>".
std::string TraceFolder(const std::string& folder, const std::string& run_id);

// Makes a folder `below` that of all traces. Errors: those of CheckOwnFolder for each of them.
Result<void> MakeTraceFolder(const std::string& folder, const std::string& below);

// Returns the file of a rank below the folder of all traces:
// "<folder>/<run id>/attempt_<n>/rank_<r>.trace".
std::string TracePath(const std::string& folder, const TraceOwner& owner);

// Writes the trace of this process. Begin and End take no lock and make no system call,
// except that an End writes a block after kTraceBlockRecords operations, and both read
// the clocks now and then.
// Thread: any.
class TraceWriter {
 public:
  // Creates the file and its folders. If there is a file of that name, adds a number
  // to the name: "rank_0.2.trace".
  // Errors: kMismatch if the process of that file has started this one, which so is a
  // helper with the variables of a rank; those of SystemError.
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& folder,
                                                     const TraceOwner& owner,
                                                     size_t max_blocks = kMaxTraceBlocks);
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter();

  const std::string& path() const { return path_; }

  // Return the number of a text or a group for records.
  uint32_t AddText(std::string_view text);
  uint32_t AddGroup(std::string_view name, uint64_t key, int size);

  // Begins an operation: writes its record, which End takes. Null: too many operations
  // are under way, so that this one is lost.
  TraceRecord* Begin(const TraceRecord& operation) {
    TraceRecord* record = ClaimUnderWay();
    if (record == nullptr) [[unlikely]]
      CountLost();
    else
      Write(*record, operation, TicksOfEvent());
    return record;
  }
  // Ends an operation.
  void End(TraceRecord* under_way) {
    under_way->end = TicksOfEvent();
    if (TraceRecord* record = Claim()) [[likely]]
      Write(*record, *under_way, under_way->begin);
    else
      CountLost();
    std::atomic_ref<uint64_t>(under_way->begin).store(0, std::memory_order_release);
    const auto place = static_cast<size_t>(under_way - mapping_->under_way);
    used_[place / 64].fetch_and(~(uint64_t{1} << place % 64), std::memory_order_release);
  }

 private:
  TraceWriter(Fd fd, std::string path, size_t max_blocks)
      : fd_(std::move(fd)), path_(std::move(path)), max_blocks_(max_blocks) {}

  Result<void> Open(const TraceOwner& owner);
  void ReadClocks();
  // Reads the clocks if the last reading is long ago.
  uint64_t TicksOfEvent() {
    const uint64_t now = Ticks();
    if (now >= next_reading_.load(std::memory_order_relaxed)) [[unlikely]]
      ReadClocks();
    return now;
  }

  TraceRecord* ClaimUnderWay() {
    for (auto& word : used_) {
      uint64_t used = word.load(std::memory_order_relaxed);
      while (~used != 0) {
        const int bit = std::countr_one(used);
        used = word.fetch_or(uint64_t{1} << bit, std::memory_order_acquire);
        if ((used >> bit & 1) == 0) return &mapping_->under_way[(&word - used_.data()) * 64 + bit];
      }
    }
    return nullptr;
  }
  // Returns a free record in the ring. Null: there is no room. Takes an index only if its
  // block has a place, so that the ring has no holes.
  TraceRecord* Claim() {
    uint64_t index = next_.load(std::memory_order_relaxed);
    uint64_t block = 0;
    do {
      block = index / kTraceBlockRecords;
      if (block >= opened_.load(std::memory_order_acquire) && !OpenBlock(block)) [[unlikely]]
        return nullptr;
    } while (!next_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    return &mapping_->ring[block % kTraceRingBlocks][index % kTraceBlockRecords];
  }
  static void Write(TraceRecord& record, const TraceRecord& values, uint64_t begin) {
    record.numbers = values.numbers;
    record.end = values.end;
    record.number = values.number;
    record.count = values.count;
    record.bytes = values.bytes;
    record.tag = values.tag;
    record.group = values.group;
    record.text = values.text;
    std::atomic_ref<uint64_t>(record.begin).store(begin, std::memory_order_release);
  }
  void CountLost();
  bool OpenBlock(uint64_t block);
  bool AwaitRecords(uint64_t block, TimePoint until) REQUIRES(mutex_);
  Result<void> MoveOut(uint64_t block, TimePoint until) REQUIRES(mutex_);

  const Fd fd_;
  const std::string path_;
  const size_t max_blocks_;
  TraceMapping* mapping_ = nullptr;
  std::atomic<uint64_t> next_ = 0;                   // index of the next record
  std::atomic<uint64_t> opened_ = kTraceRingBlocks;  // blocks that are or were in the ring
  std::atomic<uint64_t> next_reading_ = 0;           // ticks
  std::atomic_flag reading_;
  std::atomic<uint32_t> texts_ = 0;
  std::atomic<uint32_t> groups_ = 0;
  std::array<std::atomic<uint64_t>, kTracesUnderWay / 64> used_ = {};  // bits of `under_way`
  Mutex mutex_;                        // held by the thread that moves a block out
  std::atomic<bool> is_full_ = false;  // no further block leaves the ring
  std::atomic<bool> is_late_ = false;  // the last wait for a block took too long
};

}  // namespace rankrun
