#include "agent/output/console_sink.h"

#include <utility>

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kMoment{100};

}  // namespace

ConsoleSink::ConsoleSink(Loop& loop, Console& console, Options options)
    : console_(console), options_(std::move(options)) {
  if (!options_.asks || options_.alone) return;
  quiet_ = std::make_unique<Timer>(loop, [this] { Show(lines_.TakeRest()); });
}

void ConsoleSink::Write(std::string_view bytes) {
  if (options_.alone) {
    Show(bytes);
    return;
  }
  Show(lines_.Add(bytes));
  if (quiet_ != nullptr) quiet_->Start(kMoment);
}

void ConsoleSink::Finish() {
  if (quiet_ != nullptr) quiet_->Stop();
  Show(lines_.TakeRest());
}

void ConsoleSink::Show(std::string_view bytes) {
  if (bytes.empty()) return;
  console_.Write(options_.channel, {.writer = options_.writer,
                                    .bytes = bytes,
                                    .prefix = options_.prefix,
                                    .after_return = after_return_});
  after_return_ = bytes.back() == '\r';
}

}  // namespace rankrun::agent
