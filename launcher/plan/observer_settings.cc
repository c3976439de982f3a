#include "launcher/plan/observer_settings.h"

#include <utility>

#include "agent/output/log_directory.h"
#include "base/net/host_port.h"
#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kNowhere = "/dev/null";

}  // namespace

Result<agent::MetricsAddress> ParseMetricsAddress(std::string_view text) {
  agent::MetricsAddress address;
  if (text.starts_with(kUnix) && text.size() > kUnix.size()) {
    address.path = text.substr(kUnix.size());
    return address;
  }
  if (auto port = ParseNumber<uint16_t>(text)) {
    address.port = *port;
    return address;
  }
  auto parsed = ParseHostPort(text);
  if (!parsed || !parsed->port || parsed->host.empty()) {
    return Error{ErrorCode::kInvalid,
                 "want a port from 0 to 65535, HOST:PORT or unix:PATH" + Got(text)};
  }
  address.host = parsed->host;
  address.port = *parsed->port;
  return address;
}

std::string DefaultReportFolder(const Environment& environment) {
  constexpr const char* kFolder = "/rankrun/reports";
  auto state = environment("XDG_STATE_HOME");
  if (state && state->starts_with('/')) return *state + kFolder;  // others are invalid
  auto home = environment("HOME");
  return home && home->starts_with('/') ? *home + "/.local/state" + kFolder : "";
}

Result<void> ReadObservers(const Settings& settings, const Environment& environment,
                           agent::JobSpec& spec) {
  if (auto text = settings.Text("metrics")) {
    auto address = ParseMetricsAddress(*text);
    if (!address) return settings.Wrong("metrics", address.error().message);
    spec.metrics = std::move(*address);
    spec.metrics->is_open = settings.IsOn("metrics-open");
  } else if (settings.IsOn("metrics-open")) {
    return settings.Wrong("metrics-open", "has no effect without --metrics; want both");
  }
  auto folder = settings.NonEmptyText("report-dir");
  spec.report_folder_typed = folder.has_value();
  spec.report_folder = folder ? agent::Absolute(*folder) : DefaultReportFolder(environment);
  if (folder == kNowhere) spec.report_folder.clear();
  return {};
}

}  // namespace rankrun::launcher
