#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/fd.h"

namespace rankrun::test {

// Two hosts with the addresses 10.77.0.1 and 10.77.0.2: network namespaces that a cable connects.
// The first one has the address 10.77.0.3 as well.
class TwoHosts {
 public:
  static constexpr std::array<const char*, 2> kAddresses{"10.77.0.1", "10.77.0.2"};
  static constexpr const char* kSecondAddress = "10.77.0.3";  // of the first host

  // Returns null if namespaces are not permitted here.
  static std::unique_ptr<TwoHosts> Make() {
    std::unique_ptr<TwoHosts> made(new TwoHosts);
    for (Fd& host : made->hosts_) {
      if (unshare(CLONE_NEWNET) != 0) return nullptr;
      host = OwnNamespace();
    }
    const bool is_connected = std::system(made->CableScript().c_str()) == 0;
    made->Leave();
    return is_connected ? std::move(made) : nullptr;
  }
  ~TwoHosts() { Leave(); }

  // Moves the calling thread to host 0 or 1. Sockets and threads that it makes are there, too.
  bool Enter(size_t host) const { return setns(hosts_[host].get(), CLONE_NEWNET) == 0; }
  bool Leave() const { return setns(here_.get(), CLONE_NEWNET) == 0; }

 private:
  TwoHosts() = default;
  static Fd OwnNamespace() { return Fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)); }

  std::string CableScript() const {
    auto path_of = [this](size_t host) {
      return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(hosts_[host].get());
    };
    std::string script = "ip link add eth0 type veth peer name eth0 netns " + path_of(0);
    for (size_t host : {1u, 0u}) {
      const std::string add = " && ip address add ", to_cable = "/24 dev eth0";
      script += " && nsenter --net=" + path_of(host) + " sh -c 'ip link set lo up" + add +
                kAddresses[host] + to_cable + (host == 0 ? add + kSecondAddress + to_cable : "") +
                " && ip link set eth0 up'";
    }
    return "( " + script + " ) 2>/dev/null";
  }

  Fd here_ = OwnNamespace();
  std::array<Fd, 2> hosts_;
};

}  // namespace rankrun::test
