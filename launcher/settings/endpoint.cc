#include "launcher/settings/endpoint.h"

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

}  // namespace rankrun::launcher
