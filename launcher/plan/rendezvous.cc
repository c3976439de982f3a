#include "launcher/plan/rendezvous.h"

#include <array>
#include <utility>

#include "base/net/host_port.h"
#include "launcher/flags/nearest_name.h"
#include "launcher/flags/text.h"
#include "launcher/settings/endpoint.h"
#include "launcher/settings/rdzv_conf.h"

namespace rankrun::launcher {
namespace {

class RendezvousReader {
 public:
  RendezvousReader(const Settings& settings, const FullHostName& full_name)
      : settings_(settings), full_name_(full_name) {}

  Result<Rendezvous> Read() {
    for (auto step : {&RendezvousReader::ReadBackend, &RendezvousReader::ReadConf,
                      &RendezvousReader::ReadEndpoint, &RendezvousReader::ReadName,
                      &RendezvousReader::ReadAddress}) {
      if (auto read = (this->*step)(); !read) return std::move(read).error();
    }
    return std::move(result_);
  }

 private:
  void Ignore(std::string_view name, const std::string& why) {
    NoteIgnored(settings_, name, why, result_.ignored);
  }

  std::string WhyNotStatic() const {
    return settings_.IsOn("standalone") ? "overridden by " + settings_.OriginOf("standalone")
                                        : "only --rdzv-backend static uses it";
  }

  Result<void> ReadBackend() {
    auto backend = ReadRdzvBackend(settings_);
    if (!backend) return std::move(backend).error();
    bool standalone = settings_.IsOn("standalone");
    if (standalone) Ignore("rdzv-backend", WhyNotStatic());
    is_static_ = !standalone && *backend == "static";
    return CheckNodeRank();
  }

  Result<void> CheckNodeRank() {
    int node_rank = settings_.values().Count("node-rank").value_or(0);
    if (!is_static_) {
      Ignore("node-rank", WhyNotStatic());
    } else if (node_rank != 0) {
      return settings_.Wrong("node-rank", "a job of one node has node rank 0 only, got \"" +
                                              std::to_string(node_rank) + "\"");
    }
    return {};
  }

  Result<void> ReadEndpoint() {
    auto text = settings_.NonEmptyText("rdzv-endpoint");
    if (!text) return {};
    if (is_endpoint_a_path_) {
      Ignore("rdzv-endpoint", "a job of one node needs no endpoint");
      return {};
    }
    auto endpoint = ParseHostPort(Stripped(*text));
    if (!endpoint) return settings_.Wrong("rdzv-endpoint", endpoint.error().message);
    if (settings_.IsOn("standalone")) {
      Ignore("rdzv-endpoint", WhyNotStatic());
    } else if (!is_static_) {
      Ignore("rdzv-endpoint", "a job of one node needs no endpoint");
    } else if (!endpoint->port) {
      return settings_.Wrong("rdzv-endpoint", "the port is missing, want HOST:PORT" + Got(*text));
    } else {
      endpoint_ = *endpoint;
    }
    return {};
  }

  Result<void> ReadName() {
    auto name = ReadRunId(settings_);
    if (!name) return std::move(name).error();
    if (settings_.IsOn("standalone")) {
      Ignore("rdzv-id", WhyNotStatic());
    } else {
      result_.run_id = *name;
    }
    return {};
  }

  Result<void> ReadConf() {
    auto text = settings_.NonEmptyText("rdzv-conf");
    if (!text) return {};
    auto conf = RdzvConf::Parse(*text);
    if (!conf) return settings_.Wrong("rdzv-conf", conf.error().message);
    Ignore("rdzv-conf", "a job of one node waits for no other node");
    if (is_static_) return {};
    auto has_file = conf->HasFileStore();
    if (!has_file) return settings_.Wrong("rdzv-conf", has_file.error().message);
    is_endpoint_a_path_ = *has_file;
    return {};
  }

  Result<void> ReadAddress() {
    if (auto read = ReadMaster(); !read) return read;
    std::string_view from = endpoint_ ? "rdzv-endpoint" : "master-addr";
    if (result_.address) {
      Ignore("local-addr", "overridden by " + settings_.OriginOf(from));
    } else {
      from = "local-addr";
      auto host = ReadHost(settings_, from);
      if (!host) return std::move(host).error();
      result_.address = std::move(*host);
    }
    bool is_dynamic = !is_static_ && !settings_.IsOn("standalone");
    if (!result_.address && is_dynamic && full_name_) {
      from = "rdzv-backend";
      if (std::string name = full_name_(); !name.empty()) result_.address = std::move(name);
    }
    result_.address_origin = settings_.OriginOf(from);
    if (result_.port == 0) result_.port.reset();  // 0 stands for a free port
    return {};
  }

  Result<void> ReadMaster() {
    if (endpoint_) {
      result_.address = endpoint_->host;
      result_.port = endpoint_->port;
      result_.port_origin = settings_.OriginOf("rdzv-endpoint");
    } else if (is_static_) {
      auto host = ReadHost(settings_, "master-addr");
      if (!host) return std::move(host).error();
      result_.address = std::move(*host);
      result_.port = settings_.values().Port("master-port");
      result_.port_origin = settings_.OriginOf("master-port");
      return {};
    }
    std::string why =
        endpoint_ ? "overridden by " + settings_.OriginOf("rdzv-endpoint") : WhyNotStatic();
    Ignore("master-addr", why);
    Ignore("master-port", why);
    return {};
  }

  const Settings& settings_;
  const FullHostName& full_name_;
  bool is_static_ = true;
  bool is_endpoint_a_path_ = false;   // of a file, by store_type
  std::optional<HostPort> endpoint_;  // of --rdzv-endpoint, if it has an effect
  Rendezvous result_;
};

}  // namespace

Result<Rendezvous> ReadRendezvous(const Settings& settings, const FullHostName& full_name) {
  return RendezvousReader(settings, full_name).Read();
}

Result<std::string> ReadRdzvBackend(const Settings& settings) {
  std::string name = settings.Text("rdzv-backend").value_or("static");
  if (name == "static" || name == "c10d") return name;
  if (name == "etcd" || name == "etcd-v2") {
    if (settings.IsOn("standalone")) return name;
    return settings.Wrong("rdzv-backend", name + " is not supported yet; want static or c10d");
  }
  constexpr std::array<std::string_view, 4> kNames = {"static", "c10d", "etcd", "etcd-v2"};
  auto nearest = NearestName(name, kNames);
  std::string hint = nearest ? "; did you mean " + std::string(*nearest) + "?"
                             : "; rankrun cannot load a backend of a Python package";
  return settings.Wrong("rdzv-backend", "want static or c10d" + Got(name) + hint);
}

Result<std::string> ReadRunId(const Settings& settings) {
  std::string name = settings.Text("rdzv-id").value_or("");
  if (name.find('/') == name.npos) return name;
  return settings.Wrong(
      "rdzv-id", "want a name without \"/\", because it becomes part of a folder name" + Got(name));
}

}  // namespace rankrun::launcher
