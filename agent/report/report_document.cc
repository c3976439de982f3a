#include "agent/report/report_document.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxUnformatted = 256;
constexpr int kFormat = 1;  // of the document

}  // namespace

void ReportDocument::Add(const events::Event& event) {
  has_report_ |= std::holds_alternative<events::Report>(event.payload);
  unformatted_.push_back(event);
  if (unformatted_.size() >= kMaxUnformatted) Format();
}

void ReportDocument::AddEarlier(const std::string& text) {
  Format();
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("events") || !document["events"].is_array()) {
    return;
  }
  auto later = std::exchange(lines_, {});
  bytes_ = 0;
  for (const Json& event : document["events"]) {
    Append(event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  for (std::string& line : later) Append(std::move(line));
}

std::string ReportDocument::Text() {
  Format();
  std::string text = "{\"format\": " + std::to_string(kFormat) +
                     ", \"dropped_events\": " + std::to_string(dropped_) + ", \"events\": [\n";
  for (size_t i = 0; i < lines_.size(); ++i) {
    text += (i == 0 ? "" : ",") + lines_[i];
  }
  return text + "]}\n";
}

void ReportDocument::Format() {
  for (const events::Event& event : std::exchange(unformatted_, {})) {
    Append(events::FormatEvent(event));
  }
}

// Keeps the first event, which describes the job.
void ReportDocument::Append(std::string line) {
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  while (bytes_ > kMaxBytes && lines_.size() > 2) {
    auto oldest = std::next(lines_.begin());
    bytes_ -= oldest->size();
    dropped_ += 1;
    lines_.erase(oldest);
  }
}

}  // namespace rankrun::agent
