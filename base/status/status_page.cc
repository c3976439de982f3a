#include "base/status/status_page.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/memory_file.h"

namespace rankrun {
namespace {

Result<ino_t> InodeOf(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return SystemError("read the status page's inode", errno);
  auto size = static_cast<size_t>(status.st_size);
  if (size != kStatusPageBytes && size != kStatusPageBytes + kFlightBytes) {
    return Error{ErrorCode::kInvalid, "not a status page: wrong size"};
  }
  return status.st_ino;
}

// Leaves the flight recorder out if RLIMIT_FSIZE does not allow such a file. rankrun ignores
// the signal of that limit.
bool SetSize(int fd) {
  if (ftruncate(fd, kStatusPageBytes + kFlightBytes) == 0) return true;
  return errno == EFBIG && ftruncate(fd, kStatusPageBytes) == 0;
}

FlightGroup* MapFlightGroups(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return nullptr;
  if (static_cast<size_t>(status.st_size) != kStatusPageBytes + kFlightBytes) return nullptr;
  void* address =
      mmap(nullptr, kFlightBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, kStatusPageBytes);
  if (address == MAP_FAILED) return nullptr;
  madvise(address, kFlightBytes, MADV_DONTDUMP);  // a dump would take all of its memory
  return static_cast<FlightGroup*>(address);
}

int64_t Nanoseconds(TimePoint time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// Returns the agent in "/proc/<agent>/fd/<n>"; 0 for other text.
pid_t AgentOf(const char* path) {
  int agent = 0;
  int fd = 0;
  return std::sscanf(path, "/proc/%d/fd/%d", &agent, &fd) == 2 ? agent : 0;
}

}  // namespace

Result<StatusPage> StatusPage::Map(Fd fd) {
  void* address = mmap(nullptr, kStatusPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return SystemError("map the status page", errno);
  return StatusPage(std::move(fd), static_cast<StatusPageHeader*>(address));
}

Result<StatusPage> StatusPage::Create() {
  auto memory = CreateMemoryFile("rankrun-status");
  if (!memory) return std::move(memory).error().In("status page");
  Fd fd = std::move(*memory);
  if (!SetSize(fd.get())) return SystemError("size the status page", errno);
  SealSize(fd);  // protects the agent, where there are seals, from a program that cuts the file
  auto inode = InodeOf(fd.get());
  if (!inode) return std::move(inode).error();
  auto page = Map(std::move(fd));
  if (!page) return page;
  *page->header_ = StatusPageHeader{.magic = kStatusPageMagic,
                                    .version = kStatusPageVersion,
                                    .size_bytes = kStatusPageBytes,
                                    .inode = *inode,
                                    .agent_pid = getpid(),
                                    .saving = 0,
                                    .created_ticks = Ticks(),
                                    .created_time = Nanoseconds(MonotonicClock().Now()),
                                    .death_sequence = 0,
                                    .death_text = {},
                                    .debuggers_ended = 0};
  return page;
}

Result<StatusPage> StatusPage::Adopt(Fd fd, pid_t agent_pid) {
  auto inode = InodeOf(fd.get());
  if (!inode) return std::move(inode).error();
  auto page = Map(std::move(fd));
  if (!page) return page;
  const StatusPageHeader& header = page->header();
  if (header.magic != kStatusPageMagic || header.inode != *inode || header.agent_pid != agent_pid) {
    return Error{ErrorCode::kInvalid, "not the status page of this worker's agent"};
  }
  if (header.version != kStatusPageVersion) {
    return Error{ErrorCode::kInvalid, "status page of version " + std::to_string(header.version) +
                                          ", want version " + std::to_string(kStatusPageVersion) +
                                          ": rankrun and librankrun differ"};
  }
  return page;
}

Result<StatusPage> StatusPage::FromEnvironment() {
  const char* fd_text = std::getenv("RANKRUN_STATUS_FD");
  const char* path = std::getenv("RANKRUN_STATUS_PATH");
  if (fd_text == nullptr || path == nullptr) {
    return Error{ErrorCode::kNotFound, "no status page: not started by rankrun"};
  }
  // Duplicate the descriptor, so that the original stays open for this
  // process's children.
  Fd inherited(fcntl(std::atoi(fd_text), F_DUPFD_CLOEXEC, 0));
  if (inherited) {
    auto page = Adopt(std::move(inherited), AgentOf(path));
    if (page) return page;
  }
  Fd opened(open(path, O_RDWR | O_CLOEXEC));
  if (!opened) return SystemError(std::string("open ") + path, errno);
  return Adopt(std::move(opened), AgentOf(path));
}

const StatusPage* StatusPage::OfThisProcess() {
  // Never destroyed, because a thread may wait until the process ends.
  static const StatusPage* const kPage = [] {
    auto page = FromEnvironment();
    return page ? new StatusPage(*std::move(page)) : nullptr;
  }();
  return kPage;
}

StatusPage::StatusPage(StatusPage&& other) noexcept
    : fd_(std::move(other.fd_)),
      header_(std::exchange(other.header_, nullptr)),
      flight_groups_(std::exchange(other.flight_groups_, nullptr)) {}

StatusPage& StatusPage::operator=(StatusPage&& other) noexcept {
  fd_ = std::move(other.fd_);
  std::swap(header_, other.header_);
  std::swap(flight_groups_, other.flight_groups_);
  return *this;
}

StatusPage::~StatusPage() {
  if (header_ != nullptr) munmap(header_, kStatusPageBytes);
  if (flight_groups_ != nullptr) munmap(flight_groups_, kFlightBytes);
}

void StatusPage::SetSaving(bool saving) {
  std::atomic_ref<uint32_t>(header_->saving).store(saving ? 1 : 0, std::memory_order_release);
}

bool StatusPage::saving() const {
  return std::atomic_ref<uint32_t>(header_->saving).load(std::memory_order_acquire) == 1;
}

void StatusPage::PublishPeerDeath(std::string_view word) {
  if (has_peer_death()) return;
  size_t size = std::min(word.size(), kPeerDeathBytes);
  // Do not cut in the middle of a character.
  while (size < word.size() && size > 0 && (word[size] & 0xC0) == 0x80) --size;
  std::copy_n(word.data(), size, header_->death_text);
  header_->death_text[size] = '\0';
  std::atomic_ref<uint32_t>(header_->death_sequence).store(1, std::memory_order_release);
  syscall(SYS_futex, &header_->death_sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool StatusPage::has_peer_death() const {
  return std::atomic_ref<uint32_t>(header_->death_sequence).load(std::memory_order_acquire) != 0;
}

std::string StatusPage::PeerDeathMessage() const {
  if (!has_peer_death()) return "";
  // The program may have written over it by mistake.
  return {header_->death_text, strnlen(header_->death_text, kPeerDeathBytes)};
}

void StatusPage::AwaitDeath(TimePoint until) const {
  while (!has_peer_death()) {
    auto left = std::chrono::nanoseconds(until - MonotonicClock().Now()).count();
    if (left <= 0) return;
    constexpr auto kSecond = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
    timespec timeout{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
    syscall(SYS_futex, &header_->death_sequence, FUTEX_WAIT, 0, &timeout, nullptr, 0);
  }
}

void StatusPage::CountDebuggerEnd() {
  std::atomic_ref<uint32_t>(header_->debuggers_ended).fetch_add(1, std::memory_order_release);
}

uint32_t StatusPage::debuggers_ended() const {
  return std::atomic_ref<uint32_t>(header_->debuggers_ended).load(std::memory_order_acquire);
}

ActivityTable& StatusPage::activities() const {
  return *reinterpret_cast<ActivityTable*>(reinterpret_cast<std::byte*>(header_) +
                                           kActivityTableAt);
}

FlightGroup* StatusPage::flight_groups() const {
  std::atomic_ref<FlightGroup*> mapped(flight_groups_);
  FlightGroup* groups = mapped.load(std::memory_order_acquire);
  if (groups != nullptr) return groups;
  FlightGroup* mine = MapFlightGroups(fd_.get());
  if (mine == nullptr || mapped.compare_exchange_strong(groups, mine)) return mine;
  munmap(mine, kFlightBytes);  // another thread was faster
  return groups;
}

TickClock StatusPage::tick_clock() const {
  uint64_t now_ticks = Ticks();
  TimePoint now = MonotonicClock().Now();
  // The program may have written over it by mistake.
  int64_t created = std::clamp<int64_t>(header_->created_time, 0, Nanoseconds(now));
  return {.first_ticks = header_->created_ticks,
          .first_time = TimePoint(std::chrono::nanoseconds(created)),
          .now_ticks = now_ticks,
          .now_time = now};
}

std::string StatusPage::Path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_.get());
}

}  // namespace rankrun
