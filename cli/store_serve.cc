#include "cli/store_serve.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "agent/job/job_signals.h"
#include "base/log.h"
#include "base/own_file.h"
#include "base/process/open_files.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_output.h"
#include "base/uv/uv_signal.h"
#include "base/write_all.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

constexpr uint16_t kDefaultPort = 29500;
// Maximum size of the log lines that wait for a stopped terminal.
constexpr size_t kMaxLogBytes = size_t{1} << 20;

struct Host {
  std::string name;
  bool optional = false;
};

std::vector<Host> HostsOf(const launcher::ParsedFlags& flags) {
  std::vector<Host> hosts;
  for (const std::string& name : flags.Texts("host")) {
    if (name == "all") {
      hosts.insert(hosts.end(), {{"0.0.0.0"}, {"::", true}});
    } else {
      hosts.push_back({name});
    }
  }
  if (hosts.empty()) hosts = {{"127.0.0.1"}, {"::1", true}};
  return hosts;
}

bool Has(const std::vector<store::BindAddress>& addresses, const SocketAddress& wanted) {
  return std::ranges::any_of(addresses, [&](const store::BindAddress& bind) {
    return bind.address.ToString() == wanted.ToString();
  });
}

Result<std::vector<store::BindAddress>> AddressesOf(const launcher::ParsedFlags& flags) {
  uint16_t port = flags.Port("port").value_or(kDefaultPort);
  std::vector<store::BindAddress> addresses;
  for (const Host& host : HostsOf(flags)) {
    auto found = SocketAddress::Resolve(host.name, port);
    if (!found) return std::move(found).error().In("--host");
    for (const SocketAddress& address : *found) {
      if (!Has(addresses, address)) addresses.push_back({address, host.optional});
    }
  }
  return addresses;
}

Result<store::AdmissionLimits> AdmissionOf(const launcher::ParsedFlags& flags) {
  store::AdmissionLimits limits;
  for (const std::string& text : flags.Texts("allow")) {
    auto range = AddressRange::Parse(text);
    if (!range) return std::move(range).error().In("--allow");
    limits.allowed.push_back(*range);
  }
  if (auto count = flags.Count("max-connections")) limits.connections = static_cast<size_t>(*count);
  return limits;
}

store::WireLimits LimitsOf(const launcher::ParsedFlags& flags) {
  store::WireLimits limits;
  limits.key_bytes = flags.Size("max-key").value_or(limits.key_bytes);
  limits.AllowValues(flags.Size("max-value").value_or(limits.value_bytes));
  return limits;
}

bool IsAnyAddress(const store::BindAddress& bind) {
  std::string host = bind.address.Host();
  return host == "0.0.0.0" || host == "::";
}

void WarnOfOpenDoor(const store::ServerOptions& options) {
  bool for_all = options.admission.allowed.empty();
  if (for_all && std::ranges::any_of(options.addresses, IsAnyAddress)) {
    Fail(
        "warning: the store listens on all interfaces: any host that reaches its port may read "
        "and change it; --allow restricts access",
        kExitDone);
  }
}

// Creates the file atomically, because scripts wait for it to exist.
Result<void> WritePortFile(const std::string& path, uint16_t port) {
  constexpr mode_t kMode = 0644;  // clients of other users may read it
  return ReplaceFile(path, std::to_string(port) + "\n", kMode);
}

// Removes the file of an earlier store, so that no script reads the old port.
Result<void> RemovePortFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return SystemError("replace " + path, errno);
}

[[noreturn]] void EndBySignal(int signal_number) {
  if (getpid() == 1) _exit(128 + signal_number);  // PID 1 cannot end itself by a signal
  signal(signal_number, SIG_DFL);
  raise(signal_number);
  _exit(128 + signal_number);
}

// Prints the server's messages with the prefix "rankctl: ", without blocking the
// loop.
class ServerLog {
 public:
  explicit ServerLog(Loop& loop) : errors_(loop, STDERR_FILENO, {}) {
    SetLogSink([this](std::string_view line) { Write(line); });
  }
  ServerLog(const ServerLog&) = delete;
  ~ServerLog() { SetLogSink({}); }

 private:
  void Write(std::string_view line) {
    constexpr std::string_view kProgram = "rankrun: ";
    if (line.starts_with(kProgram)) line.remove_prefix(kProgram.size());
    if (errors_.queued_bytes() < kMaxLogBytes) errors_.Write("rankctl: " + std::string(line));
  }

  Output errors_;
};

// Makes SIGINT and SIGTERM, unless they are ignored, stop the loop and set
// `ended_by` to the signal's number.
Result<std::vector<std::unique_ptr<Signal>>> CatchSignals(Loop& loop, int& ended_by) {
  std::vector<std::unique_ptr<Signal>> signals;
  for (int number : {SIGINT, SIGTERM}) {
    if (agent::IsIgnored(number)) continue;
    auto caught = Signal::Catch(loop, number, [&loop, &ended_by, number] {
      ended_by = number;
      loop.Stop();
    });
    if (!caught) return std::move(caught).error();
    signals.push_back(std::move(*caught));
  }
  return signals;
}

Result<void> Announce(const SocketAddress& address, const std::optional<std::string>& port_file) {
  if (port_file) {
    auto written = WritePortFile(*port_file, address.port());
    if (!written) return std::move(written).error().In("--port-file");
  }
  auto told = TryWriteAll(STDOUT_FILENO, "rankctl: store at " + address.ToString() + "\n");
  if (!told) return std::move(told).error().In("standard output");
  return {};
}

Result<void> Serve(const launcher::ParsedFlags& flags, store::ServerOptions options) {
  Loop loop;
  ServerLog log(loop);
  SocketAddress first = options.addresses.front().address;
  auto server = store::Server::Listen(loop, std::move(options));
  if (!server) return std::move(server).error();
  int ended_by = 0;
  auto signals = CatchSignals(loop, ended_by);
  if (!signals) return std::move(signals).error();
  auto announced = Announce(first.WithPort((*server)->port()), flags.Text("port-file"));
  if (!announced) return announced;
  loop.Run();
  server->reset();
  // The loop is not destroyed, because a write to a stopped terminal could block
  // its destructor forever.
  EndBySignal(ended_by);
}

}  // namespace

Result<store::ServerOptions> ServerOptionsOf(const launcher::ParsedFlags& flags) {
  store::ServerOptions options;
  auto addresses = AddressesOf(flags);
  if (!addresses) return std::move(addresses).error();
  options.addresses = std::move(*addresses);
  auto admission = AdmissionOf(flags);
  if (!admission) return std::move(admission).error();
  options.admission = std::move(*admission);
  options.limits = LimitsOf(flags);
  options.largest_store_bytes = flags.Size("max-bytes").value_or(options.largest_store_bytes);
  options.largest_traffic_bytes = flags.Size("max-traffic").value_or(options.largest_traffic_bytes);
  options.half_request_timeout =
      flags.Seconds("half-request-timeout").value_or(options.half_request_timeout);
  if (options.half_request_timeout == std::chrono::milliseconds(0)) {
    return Error{ErrorCode::kInvalid, "--half-request-timeout: want more than 0 seconds"};
  }
  return options;
}

int RunServe(const CommandLine& line) {
  auto options = ServerOptionsOf(line.flags);
  if (!options) return Fail(options.error().message, kExitUsage);
  if (auto file = line.flags.Text("port-file")) {
    if (auto removed = RemovePortFile(*file); !removed) {
      return Fail("--port-file: " + removed.error().message, kExitNo);
    }
  }
  RaiseOpenFiles();
  WarnOfOpenDoor(*options);
  auto served = Serve(line.flags, std::move(*options));
  return Fail(served.error().message, kExitNo);
}

}  // namespace rankrun::cli
