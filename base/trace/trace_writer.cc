#include "base/trace/trace_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/host_name.h"
#include "base/log.h"
#include "base/own_file.h"
#include "base/trace/trace_reader.h"

namespace rankrun {
namespace {

// Ticks until the second reading of the clocks. Their unit is not known before.
constexpr uint64_t kFirstTicks = uint64_t{1} << 20;
// Nanoseconds between two later readings. The interval doubles, so that the last reading
// is never older than half of the trace, or than a tenth of a second.
constexpr int64_t kMinInterval = 400'000;
constexpr int64_t kMaxInterval = 100'000'000;

// Files of one name, from jobs with the same run id.
constexpr int kMaxNamesakes = 1000;

int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Reads several times and returns the reading that took the fewest ticks, because the kernel may
// stop this thread in the middle of one. The ticks are those of the middle.
ClockReading ReadAllClocks() {
  constexpr int kTries = 5;
  ClockReading best{};
  uint64_t best_took = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    ClockReading reading{};
    const uint64_t before = Ticks();
    reading.monotonic = Nanoseconds(CLOCK_MONOTONIC);
    const uint64_t took = Ticks() - before;
    reading.ticks = before + took / 2;
    reading.realtime = Nanoseconds(CLOCK_REALTIME);
    if (took < best_took) best = reading;
    best_took = std::min(best_took, took);
  }
  return best;
}

template <size_t kSize>
void SetText(char (&to)[kSize], const std::string& text) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
}

// Longest wait for a thread that writes a record, or a block to the file.
constexpr std::chrono::milliseconds kPatience{1000};

// Returns the path with a number before its end: "rank_0.2.trace".
std::string Numbered(const std::string& path, int number) {
  std::filesystem::path numbered(path);
  if (number > 1) numbered.replace_extension("." + std::to_string(number) + ".trace");
  return numbered;
}

// Returns an error if a file may not have this size. A write beyond the limit would end
// the process by SIGXFSZ.
Result<void> CheckFileLimit(size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return SystemError("read RLIMIT_FSIZE", errno);
  if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return {};
  return Error{ErrorCode::kExhausted, "RLIMIT_FSIZE allows files of " +
                                          std::to_string(limit.rlim_cur) + " bytes, want " +
                                          std::to_string(bytes)};
}

Result<void> WriteAt(int fd, const void* from, size_t bytes, size_t at) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t count = pwrite(fd, next, bytes, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write", errno);
    next += count;
    at += static_cast<size_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return {};
}

// Returns the parent of a process; 0 if it is not known.
pid_t ParentOf(pid_t pid) {
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
  const size_t name_end = line.rfind(')');  // "123 (name) S 122 ..."
  constexpr size_t kState = 4;
  if (name_end == std::string::npos || name_end + kState > line.size()) return 0;
  return static_cast<pid_t>(std::strtol(line.c_str() + name_end + kState, nullptr, 10));
}

// Returns whether the process that wrote the trace has started this one.
bool IsOfAncestor(const std::string& path) {
  auto trace = ReadTraceOwner(path);
  if (!trace || trace->host != HostName() || trace->boot != BootId()) return false;
  pid_t pid = getppid();
  while (pid > 0 && pid != trace->pid) pid = ParentOf(pid);
  return pid > 0;
}

}  // namespace

std::string TraceFolder(const std::string& folder, const std::string& run_id) {
  constexpr size_t kMaxName = 200;
  std::string run = run_id.substr(0, kMaxName);
  std::ranges::replace(run, '/', '_');
  if (run.empty() || run == "." || run == "..") run += "_";
  return folder + "/" + run;
}

Result<void> MakeTraceFolder(const std::string& folder, const std::string& below) {
  if (auto made = MakeOwnFolders(below, 0777); !made) return made;
  for (size_t end = folder.size(); end < below.size(); end = below.find('/', end + 1)) {
    if (auto own = CheckOwnFolder(below.substr(0, end)); !own) return own;
  }
  return CheckOwnFolder(below);
}

std::string TracePath(const std::string& folder, const TraceOwner& owner) {
  return TraceFolder(folder, owner.run_id) + "/attempt_" + std::to_string(owner.attempt) +
         "/rank_" + std::to_string(owner.rank) + ".trace";
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& folder,
                                                         const TraceOwner& owner,
                                                         size_t max_blocks) {
  const std::string wanted = TracePath(folder, owner);
  const std::string of_attempt = std::filesystem::path(wanted).parent_path();
  if (auto made = MakeTraceFolder(folder, of_attempt); !made) return std::move(made).error();
  auto place = FindOwnPlace(wanted, LastLink::kKeep);
  if (!place) return std::move(place).error();
  Fd fd;
  std::string path;
  int error_number = 0;
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  for (int number = 1; !fd && number <= kMaxNamesakes; ++number) {
    path = Numbered(wanted, number);
    const std::string name = std::filesystem::path(path).filename();
    fd.Reset(openat(place->folder.get(), name.c_str(), kFlags, kOwnerOnly));
    error_number = errno;
    if (!fd && error_number != EEXIST) break;
    if (!fd && IsOfAncestor(path)) {
      return Error{ErrorCode::kMismatch, path + ": is of the process that has started this one"};
    }
  }
  if (!fd) return SystemError("create " + path, error_number);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(std::move(fd), std::move(path), max_blocks));
  if (auto ok = writer->Open(owner); !ok) {
    unlink(writer->path_.c_str());  // an incomplete file is of no use
    return std::move(ok).error();
  }
  return writer;
}

Result<void> TraceWriter::Open(const TraceOwner& owner) {
  if (auto ok = CheckFileLimit(sizeof(TraceMapping)); !ok) {
    return std::move(ok).error().In("reserve room for " + path_);
  }
  // Reserves the room, because a write to mapped memory without room on the disk would
  // end the process.
  if (int error = posix_fallocate(fd_.get(), 0, sizeof(TraceMapping)); error != 0) {
    return SystemError("reserve room for " + path_, error);
  }
  void* at = mmap(nullptr, sizeof(TraceMapping), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED) return SystemError("map " + path_, errno);
  mapping_ = static_cast<TraceMapping*>(at);
  TraceHeader& header = mapping_->header;
  header.version = kTraceVersion;
  header.rank = owner.rank;
  header.attempt = owner.attempt;
  header.pid = getpid();
  for (uint64_t i = 0; i < kTraceRingBlocks; ++i) header.ring[i] = i;
  SetText(header.host, HostName());
  SetText(header.boot, BootId());
  SetText(header.run_id, owner.run_id);
  header.first = header.later[0] = ReadAllClocks();
  next_reading_ = header.first.ticks + kFirstTicks;
  std::atomic_ref<uint64_t>(header.magic).store(kTraceMagic, std::memory_order_release);
  return {};
}

TraceWriter::~TraceWriter() {
  if (mapping_ != nullptr) munmap(mapping_, sizeof(TraceMapping));
}

void TraceWriter::ReadClocks() {
  if (reading_.test_and_set()) return;  // another thread reads them
  TraceHeader& header = mapping_->header;
  const ClockReading reading = ReadAllClocks();
  const uint64_t other = 1 - header.latest;
  header.later[other] = reading;
  std::atomic_ref<uint64_t>(header.latest).store(other, std::memory_order_release);
  const int64_t passed = std::max<int64_t>(reading.monotonic - header.first.monotonic, 1);
  const auto ticks = static_cast<double>(reading.ticks - header.first.ticks);
  const auto interval = static_cast<double>(std::clamp(passed, kMinInterval, kMaxInterval));
  next_reading_ =
      reading.ticks + static_cast<uint64_t>(interval * ticks / static_cast<double>(passed));
  reading_.clear();
}

void TraceWriter::CountLost() {
  std::atomic_ref<uint64_t>(mapping_->header.lost).fetch_add(1, std::memory_order_relaxed);
}

// Makes room in the ring for all blocks up to this one. Returns whether it has a place.
// Does not sleep for the mutex: its owner may wait for a record of this thread, whose
// block it has opened meanwhile. After a wait that took too long, operations are lost
// without another wait, until a block leaves the ring.
bool TraceWriter::OpenBlock(uint64_t block) {
  const TimePoint now = MonotonicClock().Now();
  const TimePoint until = is_late_.load() ? now : now + kPatience;
  while (block >= opened_.load(std::memory_order_acquire)) {
    if (is_full_.load()) return false;
    if (!mutex_.TryLock()) {
      if (MonotonicClock().Now() > until) {
        is_late_.store(true);
        return false;
      }
      std::this_thread::yield();
      continue;
    }
    MutexLock lock(mutex_, std::adopt_lock);
    if (block < opened_.load() || is_full_.load()) continue;
    auto ok = MoveOut(opened_.load() - kTraceRingBlocks, until);
    is_late_.store(!ok && ok.error().code == ErrorCode::kTimeout);
    if (is_late_.load()) return false;
    if (!ok) {
      is_full_.store(true);
      LogWarn("the trace " + path_ + " ends here: " + ok.error().message);
      continue;
    }
    opened_.fetch_add(1, std::memory_order_release);
  }
  return true;
}

// Waits until all records of a block are written. Returns whether they are. Looks once
// more after the deadline, since this process may have been stopped.
bool TraceWriter::AwaitRecords(uint64_t block, TimePoint until) {
  for (TraceRecord& record : mapping_->ring[block % kTraceRingBlocks]) {
    const std::atomic_ref<uint64_t> begin(record.begin);
    for (bool is_late = false; begin.load(std::memory_order_acquire) == 0;) {
      if (is_late) return false;
      is_late = MonotonicClock().Now() > until;
      std::this_thread::yield();
    }
  }
  return true;
}

// Writes a block to the end of the file, and empties its place in the ring.
// Errors: kTimeout if a record is not written in time, and the ring is as it was.
Result<void> TraceWriter::MoveOut(uint64_t block, TimePoint until) {
  if (block + kTraceRingBlocks >= max_blocks_) {
    return Error{ErrorCode::kExhausted, "it has as many operations as fit"};
  }
  if (!AwaitRecords(block, until)) {
    return Error{ErrorCode::kTimeout, "a thread does not finish its record"};
  }
  auto& records = mapping_->ring[block % kTraceRingBlocks];
  const size_t at = sizeof(TraceMapping) + block * kTraceBlockBytes;
  if (auto ok = CheckFileLimit(at + kTraceBlockBytes); !ok) return ok;
  if (auto ok = WriteAt(fd_.get(), records, kTraceBlockBytes, at); !ok) return ok;
  std::memset(static_cast<void*>(records), 0, kTraceBlockBytes);
  std::atomic_ref<uint64_t>(mapping_->header.ring[block % kTraceRingBlocks])
      .store(block + kTraceRingBlocks, std::memory_order_release);
  return {};
}

uint32_t TraceWriter::AddText(std::string_view text) {
  constexpr size_t kMaxBytes = 512;
  text = text.substr(0, kMaxBytes);
  const uint32_t number = texts_.fetch_add(1) + 1;
  for (uint32_t part = 0; !text.empty(); ++part) {
    TraceRecord* record = Claim();
    if (record == nullptr) break;
    TraceText values{};
    values.numbers = trace_kind::kText;
    values.text = number;
    values.part = part;
    values.bytes = static_cast<uint32_t>(std::min(text.size(), kTracePartBytes));
    std::memcpy(values.part_of_text, text.data(), values.bytes);
    std::memcpy(static_cast<void*>(record), &values, sizeof values);
    std::atomic_ref<uint64_t>(record->begin).store(Ticks(), std::memory_order_release);
    text.remove_prefix(values.bytes);
  }
  return number;
}

uint32_t TraceWriter::AddGroup(std::string_view name, uint64_t key, int size) {
  const uint32_t number = groups_.fetch_add(1) + 1;
  const uint32_t text = AddText(name);
  if (TraceRecord* record = Claim()) {
    TraceRecord values{};
    values.numbers = trace_kind::kGroup;
    values.count = static_cast<uint64_t>(size);
    values.tag = key;
    values.group = number;
    values.text = text;
    Write(*record, values, Ticks());
  }
  return number;
}

}  // namespace rankrun
