#include "launcher/settings/endpoint.h"

#include <utility>

#include "launcher/flags/text.h"

namespace rankrun::launcher {

Result<std::vector<HostPort>> ParseEndpoints(std::string_view text) {
  std::vector<HostPort> endpoints;
  for (std::string_view part : SplitAtCommas(text)) {
    auto endpoint = ParseHostPort(Stripped(part));
    if (!endpoint) return std::move(endpoint).error();
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<std::optional<std::string>> ReadHost(const Settings& settings, std::string_view name) {
  auto text = settings.NonEmptyText(name);
  if (!text) return std::optional<std::string>();
  auto host = ParseHost(Stripped(*text));
  if (host) return std::optional(std::move(*host));
  std::string why = host.error().message;
  auto with_port = ParseHostPort(Stripped(*text));
  bool has_port = with_port && with_port->port;
  if (has_port && name == "master-addr") {
    why += "; the port is --master-port " + std::to_string(*with_port->port);
  }
  return settings.Wrong(name, why);
}

}  // namespace rankrun::launcher
