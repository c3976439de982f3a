#include "cli/endpoint.h"

#include "base/net/host_port.h"
#include "base/parse_number.h"
#include "launcher/settings/service_link.h"

namespace rankrun::cli {
namespace {

constexpr const char* kDefaultHost = "127.0.0.1";
constexpr uint16_t kDefaultPort = 29500;

Result<Endpoint> Parse(const std::string& text, const std::string& origin) {
  auto parsed = ParseHostPort(text);
  // An IPv6 address needs brackets here, because its end looks like a port.
  bool is_bare_ipv6 = parsed && parsed->host.find(':') != std::string::npos && text[0] != '[';
  if (!parsed || parsed->port.value_or(0) == 0 || is_bare_ipv6) {
    return Error{ErrorCode::kInvalid,
                 origin +
                     ": want HOST:PORT, such as node-1:29500, 127.0.0.1:29500 or "
                     "[::1]:29500, got \"" +
                     text + "\""};
  }
  return Endpoint{.host = parsed->host, .port = *parsed->port, .origin = origin};
}

Result<Endpoint> OfMaster(const std::optional<std::string>& address,
                          const std::optional<std::string>& port) {
  Endpoint endpoint{
      .host = kDefaultHost, .port = kDefaultPort, .origin = "MASTER_ADDR and MASTER_PORT"};
  if (address) {
    auto host = ParseHost(*address);
    if (!host) return std::move(host).error().In("MASTER_ADDR");
    endpoint.host = *host;
  }
  if (!port) return endpoint;
  auto number = ParseNumber<uint16_t>(*port);
  if (!number || *number == 0) {
    return Error{ErrorCode::kInvalid,
                 "MASTER_PORT: want a port number from 1 to 65535, got \"" + *port + "\""};
  }
  endpoint.port = *number;
  return endpoint;
}

}  // namespace

std::string Endpoint::ToString() const { return HostPortText(host, port); }

Result<Endpoint> FindStore(const std::optional<std::string>& flag,
                           const launcher::Environment& environment) {
  if (flag) return Parse(*flag, "--store");
  if (auto ours = environment("RANKRUN_STORE")) return Parse(*ours, "RANKRUN_STORE");
  auto address = environment("MASTER_ADDR");
  auto port = environment("MASTER_PORT");
  if (port && launcher::IsServiceLink("MASTER_PORT", *port)) port.reset();
  if (address || port) return OfMaster(address, port);
  return Endpoint{.host = kDefaultHost, .port = kDefaultPort, .origin = "the default"};
}

}  // namespace rankrun::cli
