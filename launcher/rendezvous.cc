#include "launcher/rendezvous.h"

#include <algorithm>
#include <array>

#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

struct Endpoint {
  std::string host;
  std::optional<uint16_t> port;
};

bool IsHostCharacter(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == ':';
}

Error Invalid(const std::string& text) { return {ErrorCode::kInvalid, text}; }

// "host", "host:29400", "[::1]:29400"; as torchrun has it, the last colon
// outside of brackets stands before the port.
Result<Endpoint> ParseEndpoint(std::string_view text) {
  size_t colon = text.ends_with(']') ? text.npos : text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || !std::ranges::all_of(host, IsHostCharacter)) {
    return Invalid("want HOST:PORT or [IPV6]:PORT" + Got(text));
  }
  if (colon == text.npos) return Endpoint{std::string(host), std::nullopt};
  auto port = ParseNumber<uint16_t>(text.substr(colon + 1));
  if (!port) return Invalid("want a port number from 0 to 65535 after the colon" + Got(text));
  return Endpoint{std::string(host), port};
}

// "a=1,b=2": its form only, since no key matters on one node.
Result<void> CheckConf(std::string_view text) {
  for (std::string_view part : SplitAtCommas(text)) {
    size_t equals = part.find('=');
    std::string_view key = Stripped(part.substr(0, equals));
    if (key.empty()) return Invalid("want KEY=VALUE,KEY=VALUE" + Got(text));
    bool has_value = equals != part.npos && !Stripped(part.substr(equals + 1)).empty();
    if (!has_value) return Invalid("the key \"" + std::string(key) + "\" has no value" + Got(text));
  }
  return {};
}

class Reader {
 public:
  explicit Reader(const Settings& settings) : settings_(settings) {}

  Result<Rendezvous> Read() {
    for (auto step : {&Reader::ReadNodes, &Reader::ReadBackend, &Reader::ReadEndpoint,
                      &Reader::ReadName, &Reader::ReadConf}) {
      if (auto read = (this->*step)(); !read) return std::move(read).error();
    }
    ReadAddress();
    return std::move(result_);
  }

 private:
  // An empty text is as none.
  std::optional<std::string> Text(std::string_view name) const {
    auto text = settings_.Text(name);
    return text && text->empty() ? std::nullopt : text;
  }

  void Ignore(std::string_view name, const std::string& why) {
    NoteIgnored(settings_, name, why, result_.ignored);
  }

  std::string WhyNotStatic() const {
    return settings_.IsOn("standalone") ? "overridden by " + settings_.OriginOf("standalone")
                                        : "only --rdzv-backend static looks at it";
  }

  Result<void> ReadNodes() {
    std::string text = Text("nnodes").value_or("1");
    size_t colon = std::min(text.find(':'), text.size());
    auto least = ParseNumber<int>(std::string_view(text).substr(0, colon));
    auto most =
        colon == text.size() ? least : ParseNumber<int>(std::string_view(text).substr(colon + 1));
    if (!least || !most) return settings_.Wrong("nnodes", "want N or MIN:MAX" + Got(text));
    if (*least < 1 || *least > *most) {
      return settings_.Wrong("nnodes", "want at least 1, and MIN not above MAX" + Got(text));
    }
    if (*most > 1) {
      return settings_.Wrong(
          "nnodes", "jobs of more than one node are not supported yet, want 1" + Got(text));
    }
    return {};
  }

  Result<void> ReadBackend() {
    std::string name = Text("rdzv-backend").value_or("static");
    bool standalone = settings_.IsOn("standalone");
    bool of_nodes = name == "etcd" || name == "etcd-v2";
    if (name != "static" && name != "c10d" && !of_nodes) {
      constexpr std::array<std::string_view, 4> kNames = {"static", "c10d", "etcd", "etcd-v2"};
      auto nearest = NearestName(name, kNames);
      std::string hint = nearest ? "; did you mean " + std::string(*nearest) + "?" : "";
      return settings_.Wrong("rdzv-backend", "want static or c10d" + Got(name) + hint);
    }
    if (standalone) {
      Ignore("rdzv-backend", WhyNotStatic());
    } else if (of_nodes) {
      return settings_.Wrong("rdzv-backend", name +
                                                 " is for jobs of more than one node, which are "
                                                 "not supported yet; want static or c10d");
    }
    is_static_ = !standalone && name == "static";
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
    auto text = Text("rdzv-endpoint");
    if (!text) return {};
    auto endpoint = ParseEndpoint(Stripped(*text));
    if (!endpoint) return settings_.Wrong("rdzv-endpoint", endpoint.error().message);
    if (settings_.IsOn("standalone")) {
      Ignore("rdzv-endpoint", WhyNotStatic());
    } else if (!is_static_) {
      Ignore("rdzv-endpoint", "one node needs none");
    } else if (!endpoint->port) {
      return settings_.Wrong("rdzv-endpoint", "the port is missing, want HOST:PORT" + Got(*text));
    } else {
      endpoint_ = *endpoint;
    }
    return {};
  }

  Result<void> ReadName() {
    std::string name = Text("rdzv-id").value_or("");
    if (name.find('/') != name.npos) {
      return settings_.Wrong(
          "rdzv-id", "want a name without \"/\", since a folder is named by it" + Got(name));
    }
    if (settings_.IsOn("standalone")) {
      Ignore("rdzv-id", WhyNotStatic());
    } else {
      result_.run_id = name;
    }
    return {};
  }

  Result<void> ReadConf() {
    auto text = Text("rdzv-conf");
    if (!text) return {};
    if (auto checked = CheckConf(Stripped(*text)); !checked) {
      return settings_.Wrong("rdzv-conf", checked.error().message);
    }
    Ignore("rdzv-conf", "on one node nobody waits for others");
    return {};
  }

  void ReadAddress() {
    std::string_view from = "master-addr";
    if (endpoint_) {
      from = "rdzv-endpoint";
      result_.address = endpoint_->host;
      result_.port = endpoint_->port;
      result_.port_origin = settings_.OriginOf(from);
    } else if (is_static_) {
      result_.address = Text(from);
      result_.port = settings_.values().Port("master-port");
      result_.port_origin = settings_.OriginOf("master-port");
    }
    if (endpoint_ || !is_static_) {
      std::string why = endpoint_ ? "overridden by " + settings_.OriginOf(from) : WhyNotStatic();
      Ignore("master-addr", why);
      Ignore("master-port", why);
    }
    if (result_.address) {
      Ignore("local-addr", "overridden by " + settings_.OriginOf(from));
    } else {
      from = "local-addr";
      result_.address = Text(from);
    }
    result_.address_origin = settings_.OriginOf(from);
    if (result_.port == 0) result_.port.reset();  // 0: a free one
  }

  const Settings& settings_;
  bool is_static_ = true;
  std::optional<Endpoint> endpoint_;  // that counts
  Rendezvous result_;
};

}  // namespace

Result<Rendezvous> ReadRendezvous(const Settings& settings) { return Reader(settings).Read(); }

}  // namespace rankrun::launcher
