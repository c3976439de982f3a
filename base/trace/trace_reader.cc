#include "base/trace/trace_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/status/operation_names.h"
#include "base/trace/trace_file.h"

namespace rankrun {
namespace {

template <size_t kSize>
std::string TextOf(const char (&text)[kSize]) {
  return {text, strnlen(text, kSize)};
}

Trace OwnerOf(const TraceHeader& header, const std::string& path) {
  return {.path = path,
          .rank = header.rank,
          .attempt = header.attempt,
          .pid = header.pid,
          .host = TextOf(header.host),
          .boot = TextOf(header.boot),
          .run_id = TextOf(header.run_id),
          .first = header.first,
          .last = header.later[header.latest % 2],
          .realtime_offset = header.first.realtime - header.first.monotonic,
          .lost = header.lost,
          .groups = {},
          .operations = {}};
}

using Texts = std::map<uint32_t, std::string>;

uint8_t KindOf(const TraceRecord& record) { return static_cast<uint8_t>(record.numbers); }

// An operation, whatever its end changes in it.
using OperationKey = std::tuple<uint64_t, uint64_t, uint64_t>;
OperationKey KeyOf(const TraceRecord& record) {
  return {record.begin, record.number, record.numbers & 0xffff};
}

class Reader {
 public:
  Reader(const TraceFile& file, const TickScale& scale, Trace trace)
      : file_(file), scale_(scale), trace_(std::move(trace)) {}

  Result<Trace> Read() && {
    auto under_way = file_.ReadUnderWay();
    if (!under_way) return std::move(under_way).error();
    for (const TraceRecord& record : *under_way) under_way_.emplace(KeyOf(record), record);
    auto ok = file_.ReadWritten([this](const TraceRecord& record) { AddRecord(record); });
    if (!ok) return std::move(ok).error();
    AddTexts();
    for (const TraceRecord& record : groups_and_texts_) {
      if (KindOf(record) == trace_kind::kGroup) AddGroup(record);
    }
    for (const auto& [key, record] : under_way_) records_.push_back(record);
    for (const TraceRecord& record : records_) AddOperation(record);
    for (TracedOperation& operation : trace_.operations) {
      if (!operation.is_finished) operation.end = std::max(operation.begin, last_);
    }
    std::ranges::stable_sort(trace_.operations, {}, &TracedOperation::begin);
    return std::move(trace_);
  }

 private:
  void AddRecord(const TraceRecord& record) {
    if (KindOf(record) >= trace_kind::kGroup) {
      groups_and_texts_.push_back(record);
      return;
    }
    records_.push_back(record);
    if (auto same = under_way_.find(KeyOf(record)); same != under_way_.end()) {
      under_way_.erase(same);  // it has ended meanwhile
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

  // A record of a damaged file may have any time.
  bool IsInTrace(int64_t time) const {
    constexpr int64_t kBefore = 1'000'000'000;  // nanoseconds
    constexpr int64_t kAfter = 366 * 86'400 * kBefore;
    return time >= trace_.first.monotonic - kBefore && time <= trace_.last.monotonic + kAfter;
  }

  void AddOperation(const TraceRecord& record) {
    const bool is_finished = record.end >= record.begin;
    auto group = groups_.find(record.group);
    const int64_t begin = scale_.Monotonic(record.begin);
    const int64_t ended = is_finished ? scale_.Monotonic(record.end) : begin;
    if (!IsInTrace(begin) || !IsInTrace(ended)) return;
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

  const TraceFile& file_;
  const TickScale scale_;
  Trace trace_;
  std::vector<TraceRecord> groups_and_texts_;
  std::vector<TraceRecord> records_;  // operations
  std::multimap<OperationKey, TraceRecord> under_way_;
  Texts texts_;
  std::map<uint32_t, int> groups_;
  int64_t last_ = INT64_MIN;  // time in the trace
};

}  // namespace

const char* NameOfTraced(uint8_t kind) {
  constexpr const char* kNames[] = {"MonitoredBarrier", "StoreGet",     "StoreWait",
                                    "StoreMultiGet",    "StoreBarrier", "StoreQueuePop",
                                    "RpcCall",          "RpcMethod"};
  const unsigned index = kind - trace_kind::kMonitoredBarrier;
  return index < std::size(kNames) ? kNames[index] : NameOfCollective(kind);
}

Result<Trace> ReadTrace(const std::string& path, const TickScale* scale) {
  auto file = TraceFile::Open(path);
  if (!file) return std::move(file).error();
  Trace owner = OwnerOf(file->header(), path);
  const TickScale own = owner.scale();
  return Reader(*file, scale == nullptr ? own : *scale, std::move(owner)).Read();
}

Result<Trace> ReadTraceOwner(const std::string& path) {
  auto file = TraceFile::Open(path);
  if (!file) return std::move(file).error();
  return OwnerOf(file->header(), path);
}

}  // namespace rankrun
