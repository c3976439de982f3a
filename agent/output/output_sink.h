#pragma once

#include <string_view>

namespace rankrun::agent {

// Destination of a worker's output. Thread: loop.
class OutputSink {
 public:
  OutputSink() = default;
  OutputSink(const OutputSink&) = delete;
  OutputSink& operator=(const OutputSink&) = delete;
  virtual ~OutputSink() = default;

  // Accepts any amount; data waits in memory while the sink is full.
  virtual void Write(std::string_view bytes) = 0;

  // Returns whether too much data waits; the worker should then be held back.
  virtual bool full() const = 0;

  // The worker waits for input: shows a line that it has begun, which may be its prompt.
  virtual void ShowOpenLine() {}

  // Called when the stream has ended.
  virtual void Finish() = 0;
};

}  // namespace rankrun::agent
