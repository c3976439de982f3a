#include "base/trace/trace_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/status/operation_names.h"

namespace rankrun {
namespace {

// Mapped file, unmapped by the destructor.
class MappedFile {
 public:
  MappedFile(void* at, size_t bytes) : at_(at), bytes_(bytes) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  ~MappedFile() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }

  const TraceMapping& mapping() const { return *static_cast<const TraceMapping*>(at_); }
  const TraceHeader& header() const { return mapping().header; }
  size_t blocks_out() const { return (bytes_ - sizeof(TraceMapping)) / kTraceBlockBytes; }

  // Returns the blocks that have left the ring, then those in it.
  std::vector<std::span<const TraceRecord>> Blocks() const {
    const auto* out = reinterpret_cast<const TraceRecord*>(&mapping() + 1);
    std::vector<std::span<const TraceRecord>> blocks;
    for (size_t i = 0; i < blocks_out(); ++i) {
      blocks.emplace_back(out + i * kTraceBlockRecords, kTraceBlockRecords);
    }
    for (size_t i = 0; i < kTraceRingBlocks; ++i) {
      // The writer may have died after it moved a block out, and before it emptied it.
      if (header().ring[i] >= blocks_out()) blocks.emplace_back(mapping().ring[i]);
    }
    return blocks;
  }

 private:
  void* at_;
  size_t bytes_;
};

Error NoTrace(const std::string& path) {
  return {ErrorCode::kInvalid, path + ": is no trace of rankrun"};
}

// Returns why a file without a whole mapping, or with another magic number, is refused.
// The writer sets the number when the header is complete.
Error Refusal(const std::string& path, uint64_t magic) {
  if (magic != 0 && magic != kTraceMagic) return NoTrace(path);
  return {ErrorCode::kNotFound, path + ": is incomplete, because its rank ended, or had no room " +
                                    "on the disk, when it made the file"};
}

Result<MappedFile> MapTrace(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return SystemError("open " + path, errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return SystemError("read " + path, errno);
  const auto bytes = static_cast<size_t>(status.st_size);
  if (bytes < sizeof(TraceMapping)) {
    uint64_t magic = 0;
    if (pread(fd.get(), &magic, sizeof magic, 0) < 0) return SystemError("read " + path, errno);
    return Refusal(path, magic);
  }
  void* at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return SystemError("map " + path, errno);
  MappedFile file(at, bytes);
  if (file.header().magic != kTraceMagic) return Refusal(path, file.header().magic);
  if (file.header().version != kTraceVersion) {
    return Error{ErrorCode::kInvalid, path + ": is a trace of version " +
                                          std::to_string(file.header().version) +
                                          ", want version " + std::to_string(kTraceVersion)};
  }
  return file;
}

template <size_t kSize>
std::string TextOf(const char (&text)[kSize]) {
  return {text, strnlen(text, kSize)};
}

// Converts ticks to CLOCK_MONOTONIC by the first and the last reading.
class TickScale {
 public:
  explicit TickScale(const TraceHeader& header) : first_(header.first) {
    const ClockReading& last = header.later[header.latest % 2];
    if (last.ticks <= first_.ticks) return;
    unit_ = static_cast<double>(last.monotonic - first_.monotonic) /
            static_cast<double>(last.ticks - first_.ticks);
  }

  int64_t Monotonic(uint64_t ticks) const {
    const auto since = static_cast<double>(static_cast<int64_t>(ticks - first_.ticks));
    return first_.monotonic + static_cast<int64_t>(since * unit_);
  }

 private:
  ClockReading first_;
  double unit_ = 1;  // nanoseconds of a tick; a trace with one reading has no operation of note
};

Trace OwnerOf(const TraceHeader& header, const std::string& path) {
  return {.path = path,
          .rank = header.rank,
          .attempt = header.attempt,
          .pid = header.pid,
          .host = TextOf(header.host),
          .boot = TextOf(header.boot),
          .run_id = TextOf(header.run_id),
          .first_time = header.first.monotonic,
          .realtime_offset = header.first.realtime - header.first.monotonic,
          .lost = header.lost,
          .groups = {},
          .operations = {}};
}

using Texts = std::map<uint32_t, std::string>;

// A copy, because the writer may still change the record. `begin` is 0 if nothing is
// there.
TraceRecord CopyOf(const TraceRecord& record) {
  const uint64_t begin = std::atomic_ref<uint64_t>(const_cast<uint64_t&>(record.begin))
                             .load(std::memory_order_acquire);
  TraceRecord copy = record;
  copy.begin = begin;
  return copy;
}

uint8_t KindOf(const TraceRecord& record) { return static_cast<uint8_t>(record.numbers); }

class Reader {
 public:
  Reader(const MappedFile& file, Trace trace)
      : file_(file), scale_(file.header()), trace_(std::move(trace)) {}

  Trace Read() && {
    // Before the ring, so that an operation that ends meanwhile is read twice, not never.
    std::vector<TraceRecord> under_way;
    for (const TraceRecord& record : file_.mapping().under_way) {
      under_way.push_back(CopyOf(record));
      const uint64_t begin = under_way.back().begin;
      if (begin != 0) oldest_under_way_ = std::min(oldest_under_way_, begin);
    }
    for (auto block : file_.Blocks()) {
      for (const TraceRecord& record : block) AddRecord(CopyOf(record));
    }
    AddTexts();
    for (const TraceRecord& record : groups_and_texts_) {
      if (KindOf(record) == trace_kind::kGroup) AddGroup(record);
    }
    for (const TraceRecord& record : under_way) {
      if (record.begin != 0 && !ended_.contains({record.begin, record.numbers, record.number})) {
        records_.push_back(record);
      }
    }
    for (const TraceRecord& record : records_) AddOperation(record);
    for (TracedOperation& operation : trace_.operations) {
      if (!operation.is_finished) operation.end = std::max(operation.begin, last_);
    }
    std::ranges::stable_sort(trace_.operations, {}, &TracedOperation::begin);
    return std::move(trace_);
  }

 private:
  void AddRecord(const TraceRecord& record) {
    if (record.begin == 0) return;
    if (KindOf(record) >= trace_kind::kGroup) {
      groups_and_texts_.push_back(record);
      return;
    }
    records_.push_back(record);
    if (record.begin >= oldest_under_way_) {
      ended_.insert({record.begin, record.numbers, record.number});
    }
  }

  void AddTexts() {
    std::map<std::pair<uint32_t, uint32_t>, std::string> parts;
    for (const TraceRecord& record : groups_and_texts_) {
      if (KindOf(record) != trace_kind::kText) continue;
      TraceText part{};
      std::memcpy(&part, &record, sizeof part);
      const size_t bytes = std::min<size_t>(part.bytes, kTracePartBytes);
      parts[{part.text, part.part}] = std::string(part.part_of_text, bytes);
    }
    for (const auto& [place, text] : parts) texts_[place.first] += text;
  }

  std::string Text(uint32_t number) const {
    auto found = texts_.find(number);
    return found == texts_.end() ? "" : found->second;
  }

  void AddGroup(const TraceRecord& record) {
    groups_[record.group] = static_cast<int>(trace_.groups.size());
    trace_.groups.push_back(
        {.name = Text(record.text), .key = record.tag, .size = static_cast<int>(record.count)});
  }

  void AddOperation(const TraceRecord& record) {
    const bool is_finished = record.end >= record.begin;
    auto group = groups_.find(record.group);
    const int64_t begin = scale_.Monotonic(record.begin);
    const int64_t ended = is_finished ? scale_.Monotonic(record.end) : begin;
    last_ = std::max(last_, ended);
    trace_.operations.push_back(
        {.kind = KindOf(record),
         .dtype = static_cast<uint8_t>(record.numbers >> 8),
         .op = static_cast<uint8_t>(record.numbers >> 16),
         .is_finished = is_finished,
         .has_failed = (record.numbers & kTraceFailed) != 0,
         .peer = static_cast<int32_t>(static_cast<uint32_t>(record.numbers >> 32)),
         .group = group == groups_.end() ? -1 : group->second,
         .begin = begin,
         .end = ended,
         .number = record.number,
         .count = record.count,
         .bytes = record.bytes,
         .tag = record.tag,
         .key = Text(record.text)});
  }

  const MappedFile& file_;
  TickScale scale_;
  Trace trace_;
  std::vector<TraceRecord> groups_and_texts_;
  std::vector<TraceRecord> records_;  // operations
  uint64_t oldest_under_way_ = UINT64_MAX;
  // Those that ended since then: begin, numbers and number.
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> ended_;
  Texts texts_;
  std::map<uint32_t, int> groups_;
  int64_t last_ = INT64_MIN;  // time in the trace
};

}  // namespace

const char* NameOfTraced(uint8_t kind) {
  constexpr const char* kNames[] = {"MonitoredBarrier", "StoreGet",     "StoreWait",
                                    "StoreMultiGet",    "StoreBarrier", "StoreQueuePop"};
  const unsigned index = kind - trace_kind::kMonitoredBarrier;
  return index < std::size(kNames) ? kNames[index] : NameOfCollective(kind);
}

Result<Trace> ReadTrace(const std::string& path) {
  auto file = MapTrace(path);
  if (!file) return std::move(file).error();
  return Reader(*file, OwnerOf(file->header(), path)).Read();
}

Result<Trace> ReadTraceOwner(const std::string& path) {
  auto file = MapTrace(path);
  if (!file) return std::move(file).error();
  return OwnerOf(file->header(), path);
}

}  // namespace rankrun
