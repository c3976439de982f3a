#pragma once

#include <string>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/output/log_writer.h"
#include "agent/output/output_sink.h"

namespace rankrun::agent {

// Writes a worker's output unchanged into a log file.
// Thread: loop.
class FileSink : public OutputSink {
 public:
  // `writer` must outlive the sink; Finish closes `entry`.
  FileSink(LogWriter& writer, LogWriter::Entry* entry) : writer_(writer), entry_(entry) {}

  void Write(std::string_view bytes) override { writer_.Write(entry_, bytes); }
  bool full() const override { return entry_ != nullptr && writer_.full(entry_); }
  void Finish() override;

 private:
  LogWriter& writer_;
  LogWriter::Entry* entry_;  // null: finished
};

// Writes the lines of a worker's output that contain one of several texts into
// a file that all workers share. Very long lines are checked in parts.
// Thread: loop.
class FilterSink : public OutputSink {
 public:
  struct Options {
    std::vector<std::string> texts;
    std::string prefix;
  };

  // `writer` must outlive the sink; `entry` stays open as long as the sink.
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
