#include "comm/shm/segment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>

#include "base/format.h"
#include "base/memory_file.h"
#include "base/process/cpus.h"
#include "base/process/dumpable.h"
#include "base/random_bytes.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;

// Time in which the agent reports a death, even on a busy machine.
constexpr milliseconds kDeathMessageWait{100};

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kOneHost[] =
    "; the ranks of an shm group must run on one host, as one user, in one PID namespace";

// Value of the store key by which other ranks find the memory file.
struct SegmentLocation {
  int pid;
  int fd;
  uint64_t inode;
  uint64_t nonce;

  std::string Path() const { return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd); }
  std::string Text() const {
    char text[120];
    std::snprintf(text, sizeof text, "%d %d %llu %llx", pid, fd,
                  static_cast<unsigned long long>(inode), static_cast<unsigned long long>(nonce));
    return text;
  }
  static std::optional<SegmentLocation> Parse(const std::string& text) {
    unsigned long long inode = 0, nonce = 0;
    SegmentLocation where{.pid = 0, .fd = 0, .inode = 0, .nonce = 0};
    if (std::sscanf(text.c_str(), "%d %d %llu %llx", &where.pid, &where.fd, &inode, &nonce) != 4) {
      return std::nullopt;
    }
    where.inode = inode;
    where.nonce = nonce;
    return where;
  }
};

std::string SegmentKey(const BackendConfig& config) { return config.key_prefix + "shm/segment"; }
std::string FailedKey(const BackendConfig& config) { return config.key_prefix + "shm/failed"; }

// Returns the effective user; nothing if there is no such process.
std::optional<uid_t> UserOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(file, line)) {
    unsigned user = 0;
    if (std::sscanf(line.c_str(), "Uid: %*u %u", &user) == 1) return user;
  }
  return std::nullopt;
}

Result<std::byte*> Map(const Fd& file, size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return SystemError("map shared memory", errno);
  return static_cast<std::byte*>(base);
}

Result<uint64_t> Nonce() {
  uint64_t nonce = 0;
  if (!FillRandom(nonce)) return SystemError("make a random number", errno);
  return nonce;
}

// Returns why an open file is not the segment; empty: it is the segment.
std::string SegmentMismatch(const Fd& file, const SegmentLocation& where,
                            const SegmentLayout& layout) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return "fstat failed";
  if (status.st_ino != where.inode) return "it is another file";
  if (status.st_uid != geteuid()) {
    return "it belongs to user " + std::to_string(status.st_uid) + ", this rank runs as user " +
           std::to_string(geteuid());
  }
  if (static_cast<size_t>(status.st_size) != layout.size()) return "its size differs";
  if ((fcntl(file.get(), F_GET_SEALS) & kSeals) != kSeals) return "it is not sealed";
  return "";
}

Result<Fd> OpenMemory(const std::string& what, const SegmentLocation& where,
                      const SegmentLayout& layout) {
  Fd file(open(where.Path().c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return SystemError(what, errno);
  std::string mismatch = SegmentMismatch(file, where, layout);
  if (!mismatch.empty()) return Error{ErrorCode::kSystem, what + ": " + mismatch};
  return file;
}

// Publishes why this rank cannot join, because others may wait for it in the
// store or in the segment.
void PublishFailure(const BackendConfig& config, const std::string& message) {
  int global_rank = config.global_ranks[static_cast<size_t>(config.group_rank)];
  std::string why = "rank " + std::to_string(global_rank) + ": " + message;
  (void)config.store.CompareSet(FailedKey(config), "", why);
  if (config.group_rank == 0) (void)config.store.CompareSet(SegmentKey(config), "", "failed");
}

// Returns the failure that a rank has published; empty: none.
Result<std::string> PublishedFailure(const BackendConfig& config) {
  const std::string failed[] = {FailedKey(config)};
  auto found = config.store.Check(failed);
  if (!found) return std::move(found).error();
  if (!*found) return std::string();
  auto why = config.store.Get(failed[0], milliseconds(1000));
  return why ? *why : std::string("a rank has failed");
}

}  // namespace

Segment::Segment(const BackendConfig& config, const SegmentLayout& layout, std::byte* base)
    : rank_(config.group_rank),
      global_ranks_(config.global_ranks),
      layout_(layout),
      base_(base),
      errors_(header()),
      exit_note_(std::in_place, area(rank_).exit_code) {}

Segment::~Segment() {
  exit_note_.reset();
  area(rank_).left.store(1, std::memory_order_release);
  munmap(base_, layout_.size());
}

Result<std::unique_ptr<Segment>> Segment::Meet(const BackendConfig& config, size_t bounce_bytes) {
  SegmentLayout layout{.world_size = config.world_size(),
                       .bounce_bytes = bounce_bytes,
                       .message_bytes = MessageBytes(config.world_size())};
  auto segment = config.group_rank == 0 ? Make(config, layout) : Open(config, layout);
  if (segment) {
    (*segment)->PublishProcessInfo();
    auto met = (*segment)->AwaitAll(RankArea::kMapped, config);
    if (met) met = (*segment)->WatchProcesses();
    // No rank may return, and perhaps exit, before all others watch its
    // process.
    if (met) met = (*segment)->AwaitAll(RankArea::kWatches, config);
    if (met) return segment;
    // Publish before rank 0 closes the memory: ranks that cannot open it any
    // more read this text.
    PublishFailure(config, met.error().message);
    return std::move(met).error();
  }
  PublishFailure(config, segment.error().message);
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::Make(const BackendConfig& config,
                                               const SegmentLayout& layout) {
  if (layout.world_size > 1 && HidesProcFiles()) {
    return Error{ErrorCode::kSystem, std::string("share memory: this process ") + kHiddenFiles +
                                         ", which the backend shm needs; want tcp"};
  }
  auto memory = CreateMemoryFile("rankrun-shm");
  if (!memory) return std::move(memory).error();
  Fd file = std::move(*memory);
  if (ftruncate(file.get(), static_cast<off_t>(layout.size())) != 0) {
    return SystemError("size shared memory", errno);
  }
  if (!SealSize(file)) {
    return SystemError("seal shared memory, which needs the system call memfd_create (Linux 3.17)",
                       errno);
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return SystemError("fstat", errno);
  auto nonce = Nonce();
  if (!nonce) return std::move(nonce).error();
  auto base = Map(file, layout.size());
  if (!base) return std::move(base).error();

  std::unique_ptr<Segment> segment(new Segment(config, layout, *base));
  SegmentHeader& header = *new (*base) SegmentHeader{};
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.world_size = static_cast<uint32_t>(layout.world_size);
  header.nonce = *nonce;
  header.size_bytes = layout.size();
  header.bounce_bytes = layout.bounce_bytes;
  header.message_bytes = layout.message_bytes;
  SegmentLocation where{.pid = getpid(), .fd = file.get(), .inode = status.st_ino, .nonce = *nonce};
  segment->file_ = std::move(file);
  if (layout.world_size == 1) return segment;
  if (auto set = config.store.Set(SegmentKey(config), where.Text()); !set) {
    return std::move(set).error();
  }
  return segment;
}

bool AwaitDeathMessage(const DeathWatch& deaths) {
  if (deaths.has_agent()) deaths.SleepUntil(MonotonicClock().Now() + kDeathMessageWait);
  return deaths.has_death();
}

Result<std::unique_ptr<Segment>> Segment::Open(const BackendConfig& config,
                                               const SegmentLayout& layout) {
  TimePoint began = MonotonicClock().Now();
  auto text = config.store.Get(SegmentKey(config), config.timeout);
  if (!text) {
    if (text.error().code != ErrorCode::kTimeout) return std::move(text).error();
    return Error{ErrorCode::kTimeout,
                 "rank " + std::to_string(config.global_ranks[0]) + " has not joined"};
  }
  auto where = SegmentLocation::Parse(*text);
  if (!where) {
    auto why = config.store.Get(FailedKey(config), milliseconds(1000));
    return Error{ErrorCode::kSystem, why ? *why : "rank 0 has no shared memory"};
  }
  std::string what = "open the shared memory of rank " + std::to_string(config.global_ranks[0]) +
                     " (" + where->Path() + ")";
  auto file = OpenMemory(what, *where, layout);
  if (!file) {
    // Rank 0 closes the file when a rank fails to join; that rank publishes
    // why.
    auto why = PublishedFailure(config);
    // Rank 0 may also have died; then prefer the agent's report.
    if (AwaitDeathMessage(config.deaths)) return config.deaths.ErrorSince(began);
    if (why && !why->empty()) return Error{ErrorCode::kSystem, *why};
    return Error{ErrorCode::kSystem, file.error().message + kOneHost};
  }
  auto base = Map(*file, layout.size());
  if (!base) return std::move(base).error();
  const auto& header = *reinterpret_cast<const SegmentHeader*>(*base);
  bool ours = header.magic == kSegmentMagic && header.version == kSegmentVersion &&
              header.nonce == where->nonce && header.size_bytes == layout.size() &&
              header.world_size == static_cast<uint32_t>(layout.world_size) &&
              header.bounce_bytes == layout.bounce_bytes;
  if (ours) return std::unique_ptr<Segment>(new Segment(config, layout, *base));
  munmap(*base, layout.size());
  return Error{ErrorCode::kSystem, what + ": it belongs to another group or version"};
}

void Segment::PublishProcessInfo() const {
  RankArea& mine = area(rank_);
  mine.pid = getpid();
  mine.start_time = StartTimeOfProcess(mine.pid);
  if (auto cpus = AllowedCpus()) {
    mine.processors = static_cast<int32_t>(cpus->size());
    for (int cpu : *cpus) {
      mine.processors_hash = mine.processors_hash * 1'000'003 + static_cast<uint64_t>(cpu) + 1;
    }
  }
  mine.ready.store(RankArea::kMapped, std::memory_order_release);
}

// Polls the segment, because it must also check the store, which wakes no
// futex.
Result<void> Segment::AwaitAll(uint32_t ready, const BackendConfig& config) const {
  TimePoint began = MonotonicClock().Now();
  TimePoint next_check = began + milliseconds(20);
  for (;;) {
    std::vector<int> missing;
    for (int r = 0; r < world_size(); ++r) {
      if (area(r).ready.load(std::memory_order_acquire) < ready) missing.push_back(r);
    }
    if (missing.empty()) return {};
    TimePoint now = MonotonicClock().Now();
    if (config.deaths.has_death()) return config.deaths.ErrorSince(began);
    if (now - began > config.timeout) {
      return Error{ErrorCode::kTimeout,
                   NamesOf(missing) + " did not join within " + FormatSeconds(config.timeout)};
    }
    if (now >= next_check) {
      auto why = PublishedFailure(config);
      if (!why) return why.error();
      if (!why->empty()) {
        if (AwaitDeathMessage(config.deaths)) return config.deaths.ErrorSince(began);
        return Error{ErrorCode::kSystem, *why};
      }
      for (int rank : Dead()) {
        if (area(rank).ready.load(std::memory_order_acquire) >= ready) continue;
        const int one[] = {rank};
        return Error{ErrorCode::kPeerLost, NamesOf(one) + " has died"};
      }
      next_check = now + milliseconds(20);
    }
    if (now - began < milliseconds(1)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

Result<void> Segment::WatchProcesses() {
  file_.Reset();
  processes_.resize(static_cast<size_t>(world_size()));
  for (int r = 0; r < world_size(); ++r) {
    pid_t pid = area(r).pid;
    if (pid == getpid()) continue;
    auto process = ProcessHandle::Open(pid);
    std::string name = "rank " + std::to_string(NameOf(r)) + " (pid " + std::to_string(pid);
    if (!process && process.error().code == ErrorCode::kNotFound) {
      return Error{ErrorCode::kPeerLost, name + ") has died" + kOneHost};
    }
    if (!process) return std::move(process).error().In(name + ")");
    processes_[static_cast<size_t>(r)] = std::move(*process);
    if (StartTimeOfProcess(pid) == area(r).start_time) {
      auto user = UserOf(pid);
      if (!user || *user == geteuid()) continue;
      return Error{ErrorCode::kSystem, name + ") runs as user " + std::to_string(*user) +
                                           ", this rank as user " + std::to_string(geteuid()) +
                                           kOneHost};
    }
    // The process may have died since then; a reaped process has no start time.
    std::vector<int> dead = Dead();
    if (std::find(dead.begin(), dead.end(), r) != dead.end()) {
      return Error{ErrorCode::kPeerLost, name + ") died"};
    }
    return Error{ErrorCode::kSystem, name + ") is another process here" + kOneHost};
  }
  area(rank_).ready.store(RankArea::kWatches, std::memory_order_release);
  return {};
}

std::string Segment::NamesOf(std::span<const int> ranks) const {
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) names += ", ";
    names += std::to_string(NameOf(ranks[i]));
  }
  return names;
}

std::vector<int> Segment::Dead() const {
  std::vector<pollfd> polled(processes_.size());
  for (size_t r = 0; r < polled.size(); ++r) {
    polled[r] = pollfd{.fd = processes_[r].fd(), .events = POLLIN, .revents = 0};
  }
  std::vector<int> dead;
  if (poll(polled.data(), polled.size(), 0) <= 0) return dead;
  for (size_t r = 0; r < polled.size(); ++r) {
    if (polled[r].revents != 0 && processes_[r].HasEnded()) dead.push_back(static_cast<int>(r));
  }
  return dead;
}

std::vector<int> Segment::Left() const {
  std::vector<int> left;
  for (int r = 0; r < world_size(); ++r) {
    if (area(r).left.load(std::memory_order_acquire) != 0) left.push_back(r);
  }
  return left;
}

}  // namespace rankrun::comm::shm
