#include "base/net/host_port.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/parse_number.h"

namespace rankrun {
namespace {

bool IsNameCharacter(char c) {
  bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

bool IsName(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, IsNameCharacter);
}

bool IsNumeric(std::string_view host) {
  return std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// Refuses digits and dots that are no IPv4 address, such as a port or "10.0.0.256", because no
// host has such a name.
bool IsNameOrIpv4(std::string_view host) {
  in_addr address;
  return IsName(host) &&
         (!IsNumeric(host) ||
          (host.find('.') != host.npos && inet_aton(std::string(host).c_str(), &address) == 1));
}

// "::1", "fe80::1%eth0"
bool IsIpv6(std::string_view host) {
  size_t percent = std::min(host.find('%'), host.size());
  bool has_zone = percent < host.size();
  in6_addr address;
  return inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(), &address) == 1 &&
         (!has_zone || IsName(host.substr(percent + 1)));
}

Error Invalid(const std::string& want, std::string_view text) {
  return {ErrorCode::kInvalid, "want " + want + ", got \"" + std::string(text) + "\""};
}

}  // namespace

Result<HostPort> ParseHostPort(std::string_view text) {
  size_t colon = text.ends_with(']') ? text.npos : text.rfind(':');
  std::string_view host = text.substr(0, colon);
  bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!IsIpv6(host) && (has_brackets || !IsNameOrIpv4(host))) {
    return Invalid("HOST, HOST:PORT or [IPV6]:PORT", text);
  }
  if (colon == text.npos) return HostPort{std::string(host), std::nullopt};
  auto port = ParseNumber<uint16_t>(text.substr(colon + 1));
  if (!port) return Invalid("a port number from 0 to 65535 after the colon", text);
  return HostPort{std::string(host), port};
}

Result<std::string> ParseHost(std::string_view text) {
  bool has_brackets = text.starts_with('[') && text.ends_with(']');
  std::string_view host = has_brackets ? text.substr(1, text.size() - 2) : text;
  if (IsIpv6(host) || (!has_brackets && IsNameOrIpv4(host))) return std::string(host);
  auto with_port = ParseHostPort(text);
  bool has_port = with_port && with_port->port;
  return Invalid(has_port ? "HOST or an IPv6 address without a port" : "HOST or an IPv6 address",
                 text);
}

std::string HostPortText(std::string_view host, uint16_t port) {
  bool is_ipv6 = host.find(':') != host.npos;
  std::string text = is_ipv6 ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::to_string(port);
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (IsNumeric(host) && host.starts_with("127."));
}

}  // namespace rankrun
