#include "base/trace/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/trace/tick_scale.h"

namespace rankrun {
namespace {

constexpr size_t kRingRecords = kTraceRingBlocks * kTraceBlockRecords;

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

bool HaveSameClocks(const TraceHeader& a, const TraceHeader& b) {
  return a.latest == b.latest && std::memcmp(a.later, b.later, sizeof a.later) == 0;
}

// Parts of the ring, read one after the other. `add` gets a record that is in the
// second part only with the values of the third one, because the writer sets `begin`
// last.
struct RingReadings {
  std::vector<TraceRecord> first, second, third;

  void AddPlace(size_t place, uint64_t until, const TraceFile::Add& add) const {
    for (size_t i = place * kTraceBlockRecords; i < (place + 1) * kTraceBlockRecords; ++i) {
      if (second[i].begin == 0 || third[i].begin == 0) continue;
      const bool is_operation = static_cast<uint8_t>(third[i].numbers) < trace_kind::kGroup;
      if (!is_operation || third[i].end <= until) add(third[i]);
    }
  }
  // Returns the last end of an operation that was there at first. All operations that
  // a thread had ended before are there in the second reading.
  uint64_t LastEnd(size_t place) const {
    uint64_t last = 0;
    for (size_t i = place * kTraceBlockRecords; i < (place + 1) * kTraceBlockRecords; ++i) {
      const bool is_operation = static_cast<uint8_t>(third[i].numbers) < trace_kind::kGroup;
      if (first[i].begin != 0 && third[i].begin != 0 && is_operation) {
        last = std::max(last, third[i].end);
      }
    }
    return last;
  }
};

}  // namespace

Result<TraceFile> TraceFile::Open(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe must not block
  if (!fd) return SystemError("open " + path, errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return SystemError("read " + path, errno);
  if (!S_ISREG(status.st_mode)) return NoTrace(path);
  TraceFile file(path, std::move(fd));
  if (static_cast<size_t>(status.st_size) < sizeof(TraceMapping)) {
    uint64_t magic = 0;
    if (pread(file.fd_.get(), &magic, sizeof magic, 0) < 0) {
      return SystemError("read " + path, errno);
    }
    return Refusal(path, magic);
  }
  auto header = file.ReadHeader();
  if (!header) return std::move(header).error();
  file.header_ = *header;
  if (header->magic != kTraceMagic) return Refusal(path, header->magic);
  if (header->version != kTraceVersion) {
    return Error{ErrorCode::kInvalid, path + ": is a trace of version " +
                                          std::to_string(header->version) + ", want version " +
                                          std::to_string(kTraceVersion)};
  }
  if (!TickScale(header->first, header->later[header->latest % 2]).is_plausible()) {
    return Error{ErrorCode::kInvalid, path + ": is damaged: its readings of the clocks are wrong"};
  }
  return file;
}

Result<void> TraceFile::ReadBytes(size_t at, void* to, size_t bytes) const {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(fd_.get(), next, bytes, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read " + path_, errno);
    if (count == 0) return Error{ErrorCode::kInvalid, path_ + ": has become shorter"};
    next += count;
    at += static_cast<size_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return {};
}

Result<std::vector<TraceRecord>> TraceFile::ReadRecords(size_t at, size_t count) const {
  std::vector<TraceRecord> records(count);
  if (auto ok = ReadBytes(at, records.data(), count * sizeof(TraceRecord)); !ok) {
    return std::move(ok).error();
  }
  return records;
}

// Reads again if the writer has changed a clock reading meanwhile.
Result<TraceHeader> TraceFile::ReadHeader() const {
  constexpr int kTries = 10;
  TraceHeader header{};
  for (int i = 0; i < kTries; ++i) {
    const TraceHeader former = header;
    if (auto ok = ReadBytes(0, &header, sizeof header); !ok) return std::move(ok).error();
    if (i > 0 && HaveSameClocks(former, header)) break;
  }
  return header;
}

Result<size_t> TraceFile::Size() const {
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) return SystemError("read " + path_, errno);
  return static_cast<size_t>(status.st_size);
}

// An operation that is in the first and in the last of three readings did not change
// during the second one.
Result<std::vector<TraceRecord>> TraceFile::ReadUnderWay() const {
  std::array<std::vector<TraceRecord>, 3> readings;
  for (auto& reading : readings) {
    auto records = ReadRecords(offsetof(TraceMapping, under_way), kTracesUnderWay);
    if (!records) return std::move(records).error();
    reading = *std::move(records);
  }
  std::vector<TraceRecord> under_way;
  for (size_t i = 0; i < kTracesUnderWay; ++i) {
    const uint64_t begin = readings[0][i].begin;
    if (begin != 0 && begin == readings[2][i].begin) under_way.push_back(readings[1][i]);
  }
  return under_way;
}

Result<void> TraceFile::ReadBlocksOut(size_t blocks, const Add& add) const {
  for (size_t block = 0; block < blocks; ++block) {
    auto records = ReadRecords(sizeof(TraceMapping) + block * kTraceBlockBytes, kTraceBlockRecords);
    if (!records) return std::move(records).error();
    for (const TraceRecord& record : *records) {
      if (record.begin != 0) add(record);
    }
  }
  return {};
}

// The writer moves a block out by a write to the end of the file; it then empties its
// place in the ring, and at last gives the place another block. So a place that the
// readings found in another state is in the file by now.
Result<void> TraceFile::ReadWritten(const Add& add) const {
  auto before = ReadHeader();
  if (!before) return std::move(before).error();
  RingReadings ring;
  for (auto* reading : {&ring.first, &ring.second, &ring.third}) {
    auto records = ReadRecords(offsetof(TraceMapping, ring), kRingRecords);
    if (!records) return std::move(records).error();
    *reading = *std::move(records);
  }
  auto after = ReadHeader();
  if (!after) return std::move(after).error();
  auto size = Size();
  if (!size) return std::move(size).error();
  if (*size < sizeof(TraceMapping)) return NoTrace(path_);
  const size_t out = std::min((*size - sizeof(TraceMapping)) / kTraceBlockBytes, kMaxTraceBlocks);
  if (auto ok = ReadBlocksOut(out, add); !ok) return ok;
  std::vector<std::pair<uint64_t, size_t>> in;  // block and place
  uint64_t until = 0;
  for (size_t place = 0; place < kTraceRingBlocks; ++place) {
    const uint64_t block = before->ring[place];
    if (block != after->ring[place]) continue;
    until = std::max(until, ring.LastEnd(place));
    if (block >= out) in.emplace_back(block, place);
  }
  std::ranges::sort(in);
  for (const auto& [block, place] : in) ring.AddPlace(place, until, add);
  return {};
}

}  // namespace rankrun
