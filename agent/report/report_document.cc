#include "agent/report/report_document.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "agent/report/trimmed_report.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxUnformatted = 256;
constexpr int kFormat = 1;  // of the document

}  // namespace

ReportDocument ReportDocument::Parse(const std::string& text) {
  ReportDocument parsed;
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("events") || !document["events"].is_array()) {
    return parsed;
  }
  for (const Json& event : document["events"]) {
    const bool is_report = event.is_object() && event.value("event", Json()) == "report";
    parsed.has_report_ |= is_report;
    parsed.Append({event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", is_report});
  }
  if (auto dropped = document.find("dropped_events");
      dropped != document.end() && dropped->is_number_unsigned()) {
    parsed.dropped_ += dropped->get<size_t>();
  }
  return parsed;
}

void ReportDocument::Add(std::shared_ptr<const events::Event> event) {
  if (std::holds_alternative<events::Report>(event->payload)) {
    has_report_ = true;
    events::Event trimmed = *event;
    TrimReport(std::get<events::Report>(trimmed.payload));
    event = std::make_shared<const events::Event>(std::move(trimmed));
  }
  unformatted_.push_back(std::move(event));
  if (unformatted_.size() >= kMaxUnformatted) Format();
}

void ReportDocument::AddEarlier(ReportDocument earlier) {
  Format();
  earlier.Format();
  dropped_ += earlier.dropped_;
  has_report_ |= earlier.has_report_;
  auto later = std::exchange(lines_, std::move(earlier.lines_));
  bytes_ = earlier.bytes_;
  newest_report_ = earlier.newest_report_;
  for (Line& line : later) Append(std::move(line));
}

std::string ReportDocument::Text() {
  Format();
  std::string text = "{\"format\": " + std::to_string(kFormat) +
                     ", \"dropped_events\": " + std::to_string(dropped_) + ", \"events\": [\n";
  for (size_t i = 0; i < lines_.size(); ++i) {
    text += (i == 0 ? "" : ",") + lines_[i].text;
  }
  return text + "]}\n";
}

void ReportDocument::Format() {
  for (const auto& event : std::exchange(unformatted_, {})) {
    Append({events::FormatEvent(*event), std::holds_alternative<events::Report>(event->payload)});
  }
}

void ReportDocument::Append(Line line) {
  bytes_ += line.text.size();
  if (line.is_report) newest_report_ = lines_.size();
  lines_.push_back(std::move(line));
  while (bytes_ > kMaxBytes && lines_.size() > 2) DropOldest();
}

// Keeps the first event, which describes the job, and the newest report.
void ReportDocument::DropOldest() {
  const size_t oldest = newest_report_ == 1 ? 2 : 1;
  bytes_ -= lines_[oldest].text.size();
  dropped_ += 1;
  lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(oldest));
  if (newest_report_ && *newest_report_ > oldest) --*newest_report_;
}

}  // namespace rankrun::agent
