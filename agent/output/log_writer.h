#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/output/log_file.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Writes the log files of a job in libuv's pool, with one pool job at a time
// for all of them, so that a hung disk blocks only one thread of the pool. Data
// waits in memory until the disk has taken it; callers limit it with full().
// Thread: loop.
// Lifetime: may end during a write; waiting data is then discarded.
class LogWriter {
 public:
  struct Callbacks {
    std::function<void()> on_progress;                           // after each write
    std::function<void(const std::string& trouble)> on_trouble;  // once per file
    std::function<void(const std::string& loss)> on_loss;        // a closed file has gaps
  };
  struct Entry;  // a file that is open

  LogWriter(Loop& loop, Callbacks callbacks);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  // Creates the file, soon. Messages about the file begin with `whose`. The
  // result is valid until Close.
  Entry* Open(LogFile file, std::string whose);
  void Write(Entry* entry, std::string_view bytes);
  // Writes the waiting data. `entry` is invalid afterwards.
  void Close(Entry* entry);

  bool full(const Entry* entry) const;
  // Returns whether no data waits.
  bool idle() const;

 private:
  struct Batch;

  void WriteBatch();
  void OnWritten(const Batch& batch);

  Loop& loop_;
  Callbacks callbacks_;
  std::list<std::unique_ptr<Entry>> entries_;
  std::shared_ptr<Batch> batch_;  // in the pool; null: none
};

}  // namespace rankrun::agent
