#include "launcher/plan/nodes_settings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/net/host_port.h"
#include "launcher/flags/text.h"
#include "launcher/settings/endpoint.h"
#include "launcher/settings/node_range.h"
#include "launcher/settings/rdzv_conf.h"

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint16_t kStaticPort = 29500;
constexpr uint16_t kDynamicPort = 29400;
constexpr seconds kStaticTimeout{900};  // as in torchrun

// Defaults of torchrun; a node is lost after their product, in seconds.
constexpr int kKeepAliveInterval = 5;
constexpr int kKeepAliveAttempts = 3;

// Keys of torchrun's --rdzv-conf that have no effect, and the reasons.
constexpr std::string_view kOfEtcd = "only the backends etcd and etcd-v2 use it";
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kUnusedKeys = {
    {{"ca_cert", kOfEtcd},
     {"cacert", kOfEtcd},
     {"cas_backoff_max_seconds", "the nodes do not write into a common store"},
     {"cert", kOfEtcd},
     {"close_timeout", "the coordinator announces the end at once"},
     {"etcd_prefix", kOfEtcd},
     {"heartbeat_timeout", "--node-timeout sets when a silent node is lost"},
     {"key", kOfEtcd},
     {"protocol", kOfEtcd},
     {"read_timeout", "the rendezvous reads from no store"},
     {"ssl_cert", kOfEtcd},
     {"ssl_cert_key", kOfEtcd},
     {"store_type", "the rendezvous uses TCP"}}};

// Flags without effect in a job of one node.
constexpr std::array<std::string_view, 8> kFlagsOfNodes = {
    "spares",       "replace-after", "node-timeout", "last-call",
    "on-lost-node", "secret-file",   "insecure",     "store-strict"};

class NodesReader {
 public:
  NodesReader(const Settings& settings, const NodesContext& context)
      : settings_(settings), context_(context) {}

  Result<NodesPlan> Read() {
    for (auto step :
         {&NodesReader::ReadRange, &NodesReader::ReadBackend, &NodesReader::ReadConf,
          &NodesReader::ReadEndpoints, &NodesReader::ReadPlace, &NodesReader::ReadTimeouts,
          &NodesReader::ReadKeepAlive, &NodesReader::ReadId, &NodesReader::ReadJobSecret}) {
      if (auto read = (this->*step)(); !read) return std::move(read).error();
    }
    spec().store_strict = settings_.IsOn("store-strict");
    bool stops = settings_.Text("on-lost-node") == "stop";
    spec().on_lost_node = stops ? agent::LostNode::kStop : agent::LostNode::kRestart;
    spec().replace_after = settings_.values().Count("replace-after").value_or(spec().replace_after);
    NoteUnusedKeys();
    Warn();
    return std::move(plan_);
  }

 private:
  agent::NodesSpec& spec() { return plan_.spec; }

  void Ignore(std::string_view name, const std::string& why) {
    NoteIgnored(settings_, name, why, plan_.rendezvous.ignored);
  }

  void IgnoreKey(std::string_view key, const std::string& why) {
    auto found = conf_.all().find(key);
    if (found == conf_.all().end()) return;
    plan_.rendezvous.ignored.push_back(
        {settings_.OriginOf("rdzv-conf") + " " + found->first + "=" + found->second, why});
  }

  Result<void> ReadRange() {
    auto range = ReadNodeRange(settings_);
    if (!range) return std::move(range).error();
    nodes_ = range->max;
    if (settings_.IsOn("standalone")) {
      return settings_.Wrong("standalone", "is for one node, but " + settings_.OriginOf("nnodes") +
                                               " is " + *settings_.Text("nnodes"));
    }
    int spares = settings_.values().Count("spares").value_or(0);
    spec().max = range->max - spares;
    spec().min = range->min == range->max ? spec().max : range->min;
    if (spec().max < 1 || spec().min > spec().max) {
      return settings_.Wrong("spares",
                             std::to_string(spares) + " of " + std::to_string(range->max) +
                                 " nodes are too many, want at least " +
                                 std::to_string(std::max(1, spec().min)) + " without them");
    }
    return {};
  }

  Result<void> ReadBackend() {
    auto backend = ReadRdzvBackend(settings_);
    if (!backend) return std::move(backend).error();
    is_static_ = *backend == "static";
    spec().shares_port = is_static_;
    if (is_static_) spec().min = spec().max;  // as in torchrun
    return {};
  }

  Result<void> ReadConf() {
    auto conf = RdzvConf::Parse(settings_.NonEmptyText("rdzv-conf").value_or(""));
    if (!conf) return settings_.Wrong("rdzv-conf", conf.error().message);
    conf_ = std::move(*conf);
    return is_static_ ? Result<void>() : CheckStoreType();
  }

  Result<void> CheckStoreType() const {
    auto is_file = conf_.HasFileStore();
    if (!is_file) return settings_.Wrong("rdzv-conf", is_file.error().message);
    if (!*is_file) return {};
    return settings_.Wrong("rdzv-conf",
                           "store_type=file is not supported: several nodes meet at a host, not in "
                           "a file; want " +
                               settings_.OriginOf("rdzv-endpoint") +
                               " HOST[:PORT] without store_type");
  }

  // Returns a number of --rdzv-conf, or nothing if the key is absent.
  Result<std::optional<int>> Number(std::string_view key, int least) {
    auto number = conf_.Number(key, least);
    if (!number) return settings_.Wrong("rdzv-conf", number.error().message);
    return number;
  }

  Result<void> ReadEndpoints() {
    auto text = settings_.NonEmptyText("rdzv-endpoint");
    spec().endpoint_origin =
        settings_.OriginOf(text || !is_static_ ? "rdzv-endpoint" : "master-addr");
    if (!text && is_static_) return ReadMaster();
    if (!text) plan_.warnings.push_back(NoEndpoint());
    auto typed = ParseEndpoints(Stripped(text.value_or("localhost")));
    if (!typed) return settings_.Wrong("rdzv-endpoint", typed.error().message);
    if (is_static_ && typed->size() > 1) {
      return settings_.Wrong(
          "rdzv-endpoint", "want one with --rdzv-backend static, a list is for c10d" + Got(*text));
    }
    for (const HostPort& endpoint : *typed) {
      if (is_static_ && !endpoint.port) {
        return settings_.Wrong("rdzv-endpoint", "the port is missing, want HOST:PORT" + Got(*text));
      }
      if (endpoint.port == 0) {
        return settings_.Wrong("rdzv-endpoint",
                               "want a fixed port, because all nodes must know it" + Got(*text));
      }
      spec().endpoints.push_back({endpoint.host, endpoint.port.value_or(kDynamicPort)});
    }
    std::string why = is_static_ ? "overridden by " + settings_.OriginOf("rdzv-endpoint")
                                 : "only --rdzv-backend static uses it";
    Ignore("master-addr", why);
    Ignore("master-port", why);
    if (is_static_) SetMaster("rdzv-endpoint", "rdzv-endpoint");
    return {};
  }

  Result<void> ReadMaster() {
    uint16_t port = settings_.values().Port("master-port").value_or(kStaticPort);
    if (port == 0)
      return settings_.Wrong("master-port",
                             "want a fixed port, because all nodes must know it" + Got("0"));
    auto host = ReadHost(settings_, "master-addr");
    if (!host) return std::move(host).error();
    spec().endpoints = {{host->value_or("127.0.0.1"), port}};
    SetMaster("master-addr", "master-port");
    return {};
  }

  // With static, the endpoint is also the master of the workers.
  void SetMaster(std::string_view address_from, std::string_view port_from) {
    Rendezvous& rendezvous = plan_.rendezvous;
    if (settings_.NonEmptyText(address_from)) rendezvous.address = spec().endpoints[0].host;
    rendezvous.port = spec().endpoints[0].port;
    rendezvous.address_origin = settings_.OriginOf(address_from);
    rendezvous.port_origin = settings_.OriginOf(port_from);
  }

  static std::string NoEndpoint() {
    return "without --rdzv-endpoint the nodes meet at localhost:" + std::to_string(kDynamicPort) +
           ", so all of them must be on this host";
  }

  // Reads the name, address and rank of this node, and whether it is the host.
  Result<void> ReadPlace() {
    const Scheduler& scheduler = context_.scheduler;
    spec().node_name = scheduler.node_name.empty() ? context_.host_name : scheduler.node_name;
    auto local_addr = ReadHost(settings_, "local-addr");
    if (!local_addr) return std::move(local_addr).error();
    spec().local_addr = local_addr->value_or("");
    spec().node_rank = settings_.values().Count("node-rank");
    if (scheduler.node_index) spec().node_index = scheduler.node_index->value;
    auto is_host = conf_.Switch("is_host");
    if (is_static_) return ReadStaticRank();
    if (!is_host) return settings_.Wrong("rdzv-conf", is_host.error().message);
    spec().is_host = *is_host;
    bool of_scheduler =
        scheduler.endpoint && spec().endpoint_origin == scheduler.endpoint->variable;
    if (!spec().is_host && of_scheduler) spec().is_host = spec().node_index == 0;
    IgnoreKey("rank", "only --rdzv-backend static uses it");
    return {};
  }

  Result<void> ReadStaticRank() {
    std::string name = settings_.OriginOf("node-rank");
    if (spec().node_rank) {
      IgnoreKey("rank", "overridden by " + name);
    } else {
      auto rank = Number("rank", 0);
      if (!rank) return std::move(rank).error();
      if (*rank) name = settings_.OriginOf("rdzv-conf") + " rank";
      spec().node_rank = rank->value_or(0);
    }
    if (*spec().node_rank >= nodes_) {
      return Error{ErrorCode::kInvalid, name + ": want a rank from 0 to " +
                                            std::to_string(nodes_ - 1) +
                                            Got(std::to_string(*spec().node_rank))};
    }
    spec().is_host = spec().node_rank == 0;
    IgnoreKey("is_host", "with --rdzv-backend static the node with rank 0 is the host");
    return {};
  }

  Result<void> ReadTimeouts() {
    std::string_view used = is_static_ ? "timeout" : "join_timeout";
    auto join = Number(used, 1);
    if (!join) return std::move(join).error();
    if (is_static_) spec().join_timeout = kStaticTimeout;
    if (*join) spec().join_timeout = seconds(**join);
    if (is_static_) {
      IgnoreKey("join_timeout", "with --rdzv-backend static the key is timeout");
    } else {
      IgnoreKey("timeout", "only --rdzv-backend static uses it; want join_timeout");
    }
    if (auto read = ReadLastCall(); !read) return read;
    return ReadPositive("finish-timeout", spec().finish_timeout);
  }

  Result<void> ReadLastCall() {
    if (is_static_) {
      constexpr const char* kWhy = "with --rdzv-backend static the job waits for all nodes";
      Ignore("last-call", kWhy);
      IgnoreKey("last_call_timeout", kWhy);
      return {};
    }
    if (auto typed = settings_.values().Seconds("last-call")) {
      spec().last_call = *typed;
      IgnoreKey("last_call_timeout", "overridden by " + settings_.OriginOf("last-call"));
      return {};
    }
    auto last_call = Number("last_call_timeout", 1);
    if (!last_call) return std::move(last_call).error();
    if (*last_call) spec().last_call = seconds(**last_call);
    return {};
  }

  Result<void> ReadPositive(std::string_view name, milliseconds& value) {
    auto typed = settings_.values().Seconds(name);
    if (!typed) return {};
    if (*typed <= milliseconds(0)) {
      return settings_.Wrong(name, "want more than 0 seconds" + Got(*settings_.Text(name)));
    }
    value = *typed;
    return {};
  }

  Result<void> ReadKeepAlive() {
    if (settings_.Has("node-timeout")) {
      std::string why = "overridden by " + settings_.OriginOf("node-timeout");
      IgnoreKey("keep_alive_interval", why);
      IgnoreKey("keep_alive_max_attempt", why);
      return ReadPositive("node-timeout", spec().node_timeout);
    }
    auto interval = Number("keep_alive_interval", 1);
    if (!interval) return std::move(interval).error();
    auto attempts = Number("keep_alive_max_attempt", 1);
    if (!attempts) return std::move(attempts).error();
    if (!*interval && !*attempts) return {};
    constexpr seconds kMax{365 * 24 * 3600};
    spec().node_timeout = std::min(kMax, seconds(interval->value_or(kKeepAliveInterval)) *
                                             int64_t{attempts->value_or(kKeepAliveAttempts)});
    return {};
  }

  Result<void> ReadId() {
    auto id = ReadRunId(settings_);
    if (!id) return std::move(id).error();
    plan_.rendezvous.run_id = id->empty() ? "none" : *id;  // the same on all nodes, as in torchrun
    return {};
  }

  Result<void> ReadJobSecret() {
    SecretContext context = context_.secret;
    context.is_exposed = IsExposed();
    auto secret = ReadSecret(settings_, context);
    if (!secret) return std::move(secret).error();
    spec().secret = std::move(secret->secret);
    spec().secret_origin = std::move(secret->origin);
    spec().munge_credential = std::move(secret->munge_credential);
    spec().secret_is_own = secret->is_own;
    spec().secret_advice = std::move(secret->advice);
    std::ranges::move(secret->ignored, std::back_inserter(plan_.rendezvous.ignored));
    std::ranges::move(secret->warnings, std::back_inserter(plan_.warnings));
    return {};
  }

  void NoteUnusedKeys() {
    constexpr std::array<std::string_view, 7> kUsed = {"join_timeout",
                                                       "timeout",
                                                       "last_call_timeout",
                                                       "keep_alive_interval",
                                                       "keep_alive_max_attempt",
                                                       "is_host",
                                                       "rank"};
    for (const auto& [key, value] : conf_.all()) {
      if (std::ranges::find(kUsed, key) != kUsed.end()) continue;
      auto known = std::ranges::find(kUnusedKeys, std::string_view(key),
                                     [](const auto& unused) { return unused.first; });
      bool unknown = known == kUnusedKeys.end();
      IgnoreKey(key, unknown ? "rankrun has no such key" : std::string(known->second));
    }
  }

  bool IsExposed() {
    return !std::ranges::all_of(spec().endpoints, [](const agent::Endpoint& endpoint) {
      return IsLoopback(endpoint.host);
    });
  }

  // Warns on the coordinator's node only, so that a job has one warning.
  void Warn() {
    if (spec().is_host == false || !spec().secret.empty() || !IsExposed()) return;
    plan_.warnings.emplace_back(
        "without a job secret anybody who can connect to the port of this job can join it");
  }

  const Settings& settings_;
  const NodesContext& context_;
  RdzvConf conf_;
  bool is_static_ = true;
  int nodes_ = 1;  // number of nodes that are started, including spares
  NodesPlan plan_;
};

}  // namespace

Result<NodesPlan> ReadNodes(const Settings& settings, const NodesContext& context) {
  return NodesReader(settings, context).Read();
}

std::vector<Note> IgnoredOnOneNode(const Settings& settings) {
  std::vector<Note> notes;
  for (std::string_view name : kFlagsOfNodes) {
    NoteIgnored(settings, name, "the job has one node", notes);
  }
  return notes;
}

}  // namespace rankrun::launcher
