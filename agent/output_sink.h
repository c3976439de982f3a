#pragma once

#include <string_view>

namespace rankrun::agent {

// Where bytes of a worker's output go. Thread: loop.
class OutputSink {
 public:
  OutputSink() = default;
  OutputSink(const OutputSink&) = delete;
  OutputSink& operator=(const OutputSink&) = delete;
  virtual ~OutputSink() = default;

  // Never refuses; who writes on while it is full fills memory.
  virtual void Write(std::string_view bytes) = 0;

  // Whether more waits here than should: then the worker is to be held back.
  virtual bool full() const = 0;

  // The stream has ended.
  virtual void Finish() = 0;
};

}  // namespace rankrun::agent
