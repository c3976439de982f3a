#include "agent/output/log_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

// Limits of waiting data: for all files together, then the minimum and the
// maximum for one file.
constexpr size_t kMaxQueuedBytes = 16 * 1024 * 1024;
constexpr size_t kMinQueuedBytes = 128 * 1024;
constexpr size_t kMaxForOneFile = 2 * 1024 * 1024;

}  // namespace

struct LogWriter::Entry {
  std::shared_ptr<LogFile> file;  // shared with the pool's job
  std::string whose;
  std::string waiting = {};
  size_t in_flight_bytes = 0;
  bool touched = true;  // to be created, or data waits
  bool closed = false;
};

struct LogWriter::Batch {
  struct Part {
    std::shared_ptr<LogFile> file;
    std::string bytes;
    std::string whose;
    bool last;
    std::optional<std::string> trouble = {};
  };
  LogWriter* owner;  // null once it is gone
  std::vector<Part> parts = {};
};

LogWriter::LogWriter(Loop& loop, Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)) {}

LogWriter::~LogWriter() {
  if (batch_ != nullptr) batch_->owner = nullptr;
}

LogWriter::Entry* LogWriter::Open(LogFile file, std::string whose) {
  entries_.push_back(std::make_unique<Entry>(
      Entry{.file = std::make_shared<LogFile>(std::move(file)), .whose = std::move(whose)}));
  Entry* entry = entries_.back().get();
  if (batch_ == nullptr) WriteBatch();
  return entry;
}

void LogWriter::Write(Entry* entry, std::string_view bytes) {
  if (bytes.empty()) return;
  entry->waiting += bytes;
  entry->touched = true;
  if (batch_ == nullptr) WriteBatch();
}

void LogWriter::Close(Entry* entry) {
  entry->closed = true;
  if (batch_ == nullptr) WriteBatch();
}

bool LogWriter::full(const Entry* entry) const {
  size_t share = kMaxQueuedBytes / entries_.size();
  size_t most = std::min(std::max(share, kMinQueuedBytes), kMaxForOneFile);
  return entry->waiting.size() + entry->in_flight_bytes > most;
}

bool LogWriter::idle() const { return batch_ == nullptr; }

void LogWriter::WriteBatch() {
  auto batch = std::make_shared<Batch>(Batch{.owner = this});
  for (auto& entry : entries_) {
    entry->in_flight_bytes = entry->waiting.size();
    // Includes closed entries: the last owner closes the file, which may block.
    if (!std::exchange(entry->touched, false) && !entry->closed) continue;
    batch->parts.push_back({.file = entry->file,
                            .bytes = std::exchange(entry->waiting, {}),
                            .whose = entry->whose,
                            .last = entry->closed});
  }
  std::erase_if(entries_, [](const auto& entry) { return entry->closed; });
  batch_ = nullptr;
  if (batch->parts.empty()) return;
  batch_ = batch;
  RunInPool(
      loop_,
      [batch] {
        for (Batch::Part& part : batch->parts) {
          TimePoint now = std::chrono::steady_clock::now();
          part.trouble =
              part.last ? part.file->Finish(part.bytes, now) : part.file->Write(part.bytes, now);
          part.file.reset();
        }
      },
      [batch] {
        if (batch->owner != nullptr) batch->owner->OnWritten(*batch);
      });
}

void LogWriter::OnWritten(const Batch& batch) {
  WriteBatch();
  for (const Batch::Part& part : batch.parts) {
    if (!part.trouble) continue;
    const auto& tell = part.last ? callbacks_.on_loss : callbacks_.on_trouble;
    tell(part.whose + ": " + *part.trouble);
  }
  callbacks_.on_progress();
}

}  // namespace rankrun::agent
