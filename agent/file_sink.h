#pragma once

#include <string>
#include <vector>

#include "agent/line_buffer.h"
#include "agent/log_writer.h"
#include "agent/output_sink.h"

namespace rankrun::agent {

// Writes a worker's output into a log file, byte by byte as it comes.
// Thread: loop.
class FileSink : public OutputSink {
 public:
  // `writer` outlives it; `entry` is closed by Finish.
  FileSink(LogWriter& writer, LogWriter::Entry* entry) : writer_(writer), entry_(entry) {}

  void Write(std::string_view bytes) override { writer_.Write(entry_, bytes); }
  bool full() const override { return entry_ != nullptr && writer_.full(entry_); }
  void Finish() override;

 private:
  LogWriter& writer_;
  LogWriter::Entry* entry_;  // null: finished
};

// Writes those lines of a worker's output that contain one of some texts into
// a file that the workers share. Lines without an end are looked at in parts.
// Thread: loop.
class FilterSink : public OutputSink {
 public:
  struct Options {
    std::vector<std::string> texts;
    std::string prefix;
  };

  // `writer` outlives it; `entry` stays open as long as this.
  FilterSink(LogWriter& writer, LogWriter::Entry* entry, Options options)
      : writer_(writer), entry_(entry), options_(std::move(options)) {}

  void Write(std::string_view bytes) override;
  bool full() const override { return writer_.full(entry_); }
  void Finish() override;

 private:
  void Pass(std::string_view lines);

  LogWriter& writer_;
  LogWriter::Entry* entry_;
  const Options options_;
  LineBuffer lines_;
};

}  // namespace rankrun::agent
