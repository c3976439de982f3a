#include "launcher/endpoint.h"

#include <algorithm>

#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

bool IsHostCharacter(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == ':';
}

Error Invalid(const std::string& text) { return {ErrorCode::kInvalid, text}; }

}  // namespace

Result<HostAndPort> ParseEndpoint(std::string_view text) {
  size_t colon = text.ends_with(']') ? text.npos : text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || !std::ranges::all_of(host, IsHostCharacter)) {
    return Invalid("want HOST:PORT or [IPV6]:PORT" + Got(text));
  }
  if (colon == text.npos) return HostAndPort{std::string(host), std::nullopt};
  auto port = ParseNumber<uint16_t>(text.substr(colon + 1));
  if (!port) return Invalid("want a port number from 0 to 65535 after the colon" + Got(text));
  return HostAndPort{std::string(host), port};
}

Result<std::vector<HostAndPort>> ParseEndpoints(std::string_view text) {
  std::vector<HostAndPort> endpoints;
  for (std::string_view part : SplitAtCommas(text)) {
    auto endpoint = ParseEndpoint(Stripped(part));
    if (!endpoint) return std::move(endpoint).error();
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

std::string EndpointText(const agent::Endpoint& endpoint) {
  bool brackets = endpoint.host.find(':') != std::string::npos;
  std::string host = brackets ? "[" + endpoint.host + "]" : endpoint.host;
  return host + ":" + std::to_string(endpoint.port);
}

bool IsLoopback(std::string_view host) {
  bool digits =
      std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return host == "localhost" || host == "::1" || (digits && host.starts_with("127."));
}

}  // namespace rankrun::launcher
