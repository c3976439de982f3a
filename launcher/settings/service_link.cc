#include "launcher/settings/service_link.h"

#include <algorithm>

namespace rankrun::launcher {
namespace {

constexpr std::string_view kProtocols[] = {"tcp", "udp", "sctp"};

// Returns whether `name` contains "_PORT_<digits>_".
bool HasPortNumber(std::string_view name) {
  constexpr std::string_view kPort = "_PORT_";
  size_t found = name.find(kPort);
  if (found == std::string_view::npos) return false;
  std::string_view rest = name.substr(found + kPort.size());
  size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return digits > 0 && rest.substr(digits).starts_with('_');
}

}  // namespace

bool IsServiceLink(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST") || HasPortNumber(name)) return true;
  if (name.ends_with("_SERVICE_PORT") || name.find("_SERVICE_PORT_") != name.npos) return true;
  size_t scheme = value.find("://");
  return name.ends_with("_PORT") && scheme != value.npos &&
         std::ranges::find(kProtocols, value.substr(0, scheme)) != std::end(kProtocols);
}

}  // namespace rankrun::launcher
