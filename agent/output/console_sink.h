#pragma once

#include <memory>
#include <string>

#include "agent/output/console.h"
#include "agent/output/line_buffer.h"
#include "agent/output/output_sink.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Shows a worker's output on the console, line by line.
// Thread: loop.
class ConsoleSink : public OutputSink {
 public:
  struct Options {
    Console::Channel channel = Console::kStdout;
    int writer = 0;
    int local_rank = 0;
    std::string prefix = {};
    // No other writer: text is shown at once, even without the end of its line.
    bool alone = false;
    // The worker may ask a person for input: a line that stays incomplete for a
    // moment is shown.
    bool asks = false;
  };

  // `console` must outlive the sink.
  ConsoleSink(Loop& loop, Console& console, Options options);

  void Write(std::string_view bytes) override;
  bool full() const override {
    return console_.holds(options_.local_rank) || console_.full(options_.channel);
  }
  void ShowOpenLine() override { Show(lines_.TakeRest()); }
  void Finish() override;

 private:
  void Show(std::string_view bytes);

  Console& console_;
  const Options options_;
  LineBuffer lines_;
  bool after_return_ = false;
  std::unique_ptr<Timer> quiet_;  // null: `asks` is false
};

}  // namespace rankrun::agent
