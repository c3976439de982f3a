#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/trace/trace_format.h"

namespace rankrun {

// The bytes of a trace file, to which its process may still write. They are read and
// not mapped, because this process would get SIGBUS if another one cut the file.
// Thread: one.
class TraceFile {
 public:
  // Errors: those of ReadTrace.
  static Result<TraceFile> Open(const std::string& path);

  const TraceHeader& header() const { return header_; }

  // Returns the operations under way. To be called before ReadWritten, so that an
  // operation that ends meanwhile is read twice, not never.
  Result<std::vector<TraceRecord>> ReadUnderWay() const;

  // Calls `add` for each written record: an operation that has ended, a group or a
  // text. Blocks are in their order. Leaves out operations that have ended since the
  // call, so that none is missing between others.
  using Add = std::function<void(const TraceRecord&)>;
  Result<void> ReadWritten(const Add& add) const;

 private:
  TraceFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Result<void> ReadBytes(size_t at, void* to, size_t bytes) const;
  Result<std::vector<TraceRecord>> ReadRecords(size_t at, size_t count) const;
  Result<TraceHeader> ReadHeader() const;
  Result<size_t> Size() const;
  Result<void> ReadBlocksOut(size_t blocks, const Add& add) const;

  std::string path_;
  Fd fd_;
  TraceHeader header_{};
};

}  // namespace rankrun
