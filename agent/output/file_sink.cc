#include "agent/output/file_sink.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {

void FileSink::Finish() {
  if (entry_ != nullptr) writer_.Close(std::exchange(entry_, nullptr));
}

void FilterSink::Write(std::string_view bytes) { Pass(lines_.Add(bytes)); }

void FilterSink::Finish() { Pass(lines_.TakeRest()); }

void FilterSink::Pass(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    size_t end = std::min(lines.find_first_of("\n\r"), lines.size());
    std::string_view line = lines.substr(0, end);
    bool wanted = std::ranges::any_of(options_.texts, [line](const std::string& text) {
      return line.find(text) != std::string_view::npos;
    });
    if (wanted) {
      out += options_.prefix;
      out += line;
      out += '\n';
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  writer_.Write(entry_, out);
}

}  // namespace rankrun::agent
