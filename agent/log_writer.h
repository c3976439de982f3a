#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/log_file.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Writes the log files of a job in libuv's pool, one job at a time for all of
// them: a disk that hangs takes one of its threads and no more. What the disk
// has not taken waits in memory; the caller keeps that small by looking at
// full(). Thread: loop.
// Lifetime: may end while a write is under way; what waits is discarded then.
class LogWriter {
 public:
  struct Callbacks {
    std::function<void()> on_progress;                           // after each write
    std::function<void(const std::string& trouble)> on_trouble;  // once per file
    std::function<void(const std::string& loss)> on_loss;        // a file that is over has gaps
  };
  struct Entry;  // a file that is open

  LogWriter(Loop& loop, Callbacks callbacks);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  // Creates the file, soon. `whose` stands before what is said of its trouble.
  // The result is good until Close.
  Entry* Open(LogFile file, std::string whose);
  void Write(Entry* entry, std::string_view bytes);
  // Writes what waits; `entry` means nothing after this.
  void Close(Entry* entry);

  bool full(const Entry* entry) const;
  // Nothing waits.
  bool idle() const;

 private:
  struct Batch;

  void WriteBatch();
  void OnWritten(const Batch& batch);

  Loop& loop_;
  Callbacks callbacks_;
  std::list<std::unique_ptr<Entry>> entries_;
  std::shared_ptr<Batch> batch_;  // with the pool; empty: none is
};

}  // namespace rankrun::agent
