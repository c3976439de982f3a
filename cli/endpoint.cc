#include "cli/endpoint.h"

#include <charconv>

namespace rankrun::cli {
namespace {

constexpr const char* kDefaultHost = "127.0.0.1";
constexpr uint16_t kDefaultPort = 29500;

// A store listens at no port 0.
std::optional<uint16_t> ParsePort(const std::string& text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

Result<Endpoint> Parse(const std::string& text, const std::string& origin) {
  Error bad{ErrorCode::kInvalid, origin +
                                     ": want HOST:PORT, as node-1:29500, 127.0.0.1:29500 or "
                                     "[::1]:29500, got \"" +
                                     text + "\""};
  size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  std::string host = text.substr(0, colon);
  auto port = ParsePort(text.substr(colon + 1));
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets, a part of an IPv6 address would be taken for the port.
  bool has_colon = host.find(':') != std::string::npos;
  bool has_bracket = host.find_first_of("[]") != std::string::npos;
  if (!port || host.empty() || has_bracket || has_colon != bracketed) return bad;
  return Endpoint{.host = host, .port = *port, .origin = origin};
}

Result<Endpoint> OfMaster(const std::optional<std::string>& address,
                          const std::optional<std::string>& port) {
  Endpoint endpoint{.host = address.value_or(kDefaultHost),
                    .port = kDefaultPort,
                    .origin = "MASTER_ADDR and MASTER_PORT"};
  if (!port) return endpoint;
  auto number = ParsePort(*port);
  if (!number) {
    return Error{ErrorCode::kInvalid,
                 "MASTER_PORT: want a port number from 1 to 65535, got \"" + *port + "\""};
  }
  endpoint.port = *number;
  return endpoint;
}

}  // namespace

std::string Endpoint::ToString() const {
  bool numeric6 = host.find(':') != std::string::npos;
  return (numeric6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> FindStore(const std::optional<std::string>& flag, const Environment& environment) {
  if (flag) return Parse(*flag, "--store");
  if (auto ours = environment("RANKRUN_STORE")) return Parse(*ours, "RANKRUN_STORE");
  auto address = environment("MASTER_ADDR");
  auto port = environment("MASTER_PORT");
  if (address || port) return OfMaster(address, port);
  return Endpoint{.host = kDefaultHost, .port = kDefaultPort, .origin = "the default"};
}

}  // namespace rankrun::cli
