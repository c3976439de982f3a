#include "comm/gloo/device.h"

#include <gloo/transport/tcp/device.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>

#include "base/process/signals_blocked.h"
#include "comm/gloo/error_text.h"

namespace rankrun::comm::gloo {
namespace {

std::string FirstInterface(const BackendConfig& config) {
  return config.network_interface.substr(0, config.network_interface.find(','));
}

}  // namespace

uint32_t InterfacesOf(const BackendConfig& config) {
  const std::string& names = config.network_interface;
  if (names.empty()) return 0;
  return static_cast<uint32_t>(std::count(names.begin(), names.end(), ',')) + 1;
}

Result<GlooDevice> MakeDevice(const BackendConfig& config) {
  std::string interface = FirstInterface(config);
  std::string what = config.network_interface.empty()
                         ? "listen at " + config.host
                         : "listen at interface " + interface + " (GLOO_SOCKET_IFNAME)";
  // Gloo checks this, too, but leaks memory and reports less.
  if (!interface.empty() && if_nametoindex(interface.c_str()) == 0) {
    return SystemError(what, errno);
  }
  const SignalsBlocked in_gloos_thread;
  ::gloo::transport::tcp::attr attributes;
  (interface.empty() ? attributes.hostname : attributes.iface) =
      interface.empty() ? config.host : interface;
  try {
    return ::gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kSystem, PlainText(exception.what())}.In(what);
  }
}

}  // namespace rankrun::comm::gloo
