#include "launcher/settings/endpoint.h"

#include <algorithm>

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

bool IsLoopback(std::string_view host) {
  bool digits =
      std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return host == "localhost" || host == "::1" || (digits && host.starts_with("127."));
}

}  // namespace rankrun::launcher
