#pragma once

#include <memory>
#include <string>

#include "agent/console.h"
#include "agent/line_buffer.h"
#include "agent/output_sink.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// Shows a worker's output on the console, line by line.
// Thread: loop.
class ConsoleSink : public OutputSink {
 public:
  struct Options {
    Console::Channel channel = Console::kStdout;
    int writer = 0;
    std::string prefix = {};
    // Nobody else writes: what comes is shown at once, also without a line's end.
    bool alone = false;
    // A person may be asked something: a line that stays without its end for a
    // moment is shown.
    bool asks = false;
  };

  // `console` outlives it.
  ConsoleSink(Loop& loop, Console& console, Options options);

  void Write(std::string_view bytes) override;
  bool full() const override { return console_.full(options_.channel); }
  void Finish() override;

 private:
  void Show(std::string_view bytes);

  Console& console_;
  const Options options_;
  LineBuffer lines_;
  bool after_return_ = false;
  std::unique_ptr<Timer> quiet_;  // null: nobody is asked
};

}  // namespace rankrun::agent
