#include "comm/world/rendezvous.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/net/host_port.h"
#include "base/parse_number.h"
#include "comm/core/time_left.h"
#include "comm/group/group.h"
#include "comm/stores/store_state.h"
#include "store/clients/file_store.h"
#include "store/clients/tcp_store.h"

namespace rankrun::comm {
namespace {

using Scheme = InitMethod::Scheme;

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

constexpr int kMaxRanks = 1 << 30;

Result<void> ReadQuery(const std::string& url, std::string_view query, InitMethod& method) {
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    std::string key(pair.substr(0, pair.find('=')));
    std::string_view value = pair.substr(std::min(pair.size(), key.size() + 1));
    if (key != "rank" && key != "world_size") {
      return Invalid("init_method \"" + url + "\": there is no key \"" + key +
                     "\": want rank or world_size");
    }
    auto number = ParseNumber<int>(value);
    if (!number || *number < 0 || *number > kMaxRanks) {
      return Invalid("init_method \"" + url + "\": " + key + " is \"" + std::string(value) +
                     "\": want a whole number 0.." + std::to_string(kMaxRanks));
    }
    (key == "rank" ? method.rank : method.world_size) = *number;
  }
  return {};
}

Result<void> ReadAddress(const std::string& url, std::string_view address, InitMethod& method) {
  auto target = ParseHostPort(address);
  // Port 0 would let rank 0 listen on a port that the other ranks cannot know.
  if (!target || target->port.value_or(0) == 0) {
    return Invalid("init_method \"" + url + "\": want tcp://host:port, with a port 1..65535");
  }
  method.host = target->host;
  method.port = *target->port;
  return {};
}

// Sets `value` from the option or from the URL. Fails if both give it, as in
// torch.
Result<void> Take(const char* name, int option, std::optional<int> in_url,
                  std::optional<int>& value) {
  if (option >= 0 && in_url) {
    return Invalid(std::string(name) + " is given as an option and in init_method: want one");
  }
  value = in_url;
  if (option >= 0) value = option;
  return {};
}

bool IsSet(const GetVariable& get, const char* name) {
  const char* value = get(name);
  return value != nullptr && *value != '\0';
}

Error Missing(const std::string& name, bool has_store) {
  const char* wanted = has_store ? "a store needs rank and world_size, as options"
                                 : "tcp:// and file:// need rank and world_size, as options, as "
                                   "?rank=0&world_size=2, or in RANK and WORLD_SIZE";
  return Invalid(name + " is missing: " + wanted);
}

Result<Given> GivenBy(const InitOptions& options, const InitMethod& method,
                      const GetVariable& get) {
  Given given{.address = method.scheme != Scheme::kEnvironment || options.store != nullptr};
  if (auto ok = Take("rank", options.rank, method.rank, given.global_rank); !ok) return ok.error();
  if (auto ok = Take("world_size", options.world_size, method.world_size, given.world_size); !ok) {
    return ok.error();
  }
  if (given.world_size == 0) return Invalid("world_size is 0: want at least 1");
  if (!given.address) return given;
  bool has_store = options.store != nullptr;
  auto lacks = [&](const std::optional<int>& value, const char* variable) {
    return !value && (has_store || !IsSet(get, variable));
  };
  if (lacks(given.global_rank, "RANK")) return Missing("rank", has_store);
  if (lacks(given.world_size, "WORLD_SIZE")) return Missing("world_size", has_store);
  return given;
}

Result<void> Connect(const std::string& host, uint16_t port, const InitOptions& options,
                     const DeathWatch& deaths, Meeting& meeting) {
  auto store = store::TcpStore::Connect(
      host, port, {.connect_timeout = Bounded(options.timeout), .deaths = deaths});
  if (!store) return Error{ErrorCode::kPeerLost, std::move(store).error().message};
  meeting.host = ListenHost(meeting.place, (*store)->local_address().Host());
  meeting.store = *std::move(store);
  return {};
}

Result<void> ServeAndConnect(const std::string& host, uint16_t port, const InitOptions& options,
                             const DeathWatch& deaths, Meeting& meeting) {
  bool serves = meeting.place.global_rank == 0 && !meeting.place.agent_serves;
  if (serves) {
    auto server = ServeStore(host, port);
    if (!server) return std::move(server).error();
    meeting.server = *std::move(server);
  }
  return Connect(host, port, options, deaths, meeting);
}

Result<void> OpenFile(const std::string& path, const DeathWatch& deaths, Meeting& meeting) {
  std::string run = "rankrun/" + std::to_string(meeting.place.world_size);
  auto store = store::FileStore::Open(path, run, {.deaths = deaths});
  if (!store) return std::move(store).error();
  meeting.store = *std::move(store);
  meeting.host = "127.0.0.1";
  return {};
}

}  // namespace

Result<InitMethod> ParseInitMethod(const std::string& url) {
  InitMethod method;
  size_t mark = url.find('?');
  std::string_view text(url);
  std::string_view target = text.substr(0, mark);
  if (mark != std::string::npos) {
    if (auto ok = ReadQuery(url, text.substr(mark + 1), method); !ok) return ok.error();
  }
  if (target == "env://") return method;
  if (target.starts_with("tcp://")) {
    method.scheme = Scheme::kTcp;
    if (auto ok = ReadAddress(url, target.substr(6), method); !ok) return ok.error();
    return method;
  }
  if (target.starts_with("file://")) {
    method.scheme = Scheme::kFile;
    method.path = target.substr(7);
    if (method.path.starts_with('/')) return method;
    return Invalid("init_method \"" + url + "\" has " +
                   (method.path.empty() ? "no path" : "no absolute path") + ": want file:///path");
  }
  return Invalid("init_method is \"" + url + "\": want env://, tcp://host:port or file:///path");
}

Result<Meeting> Meet(const InitOptions& options, const GetVariable& get, const DeathWatch& deaths) {
  Result<InitMethod> method = ParseInitMethod(options.init_method);
  if (!method) return method.error();
  if (options.store && options.init_method != InitOptions().init_method) {
    return Invalid("store and init_method are both given: want one");
  }
  Result<Given> given = GivenBy(options, *method, get);
  if (!given) return given.error();
  auto environment = ReadEnvironment(get, *given);
  if (!environment) return std::move(environment).error();
  Meeting meeting{.place = *std::move(environment)};
  Result<void> met;
  if (options.store) {
    auto own = StoreState::Of(*options.store).store->Clone(Bounded(options.timeout));
    if (!own) return std::move(own).error();
    meeting.store = *std::move(own);
    meeting.host = "127.0.0.1";
    meeting.place.agent_serves = false;
  } else if (method->scheme == Scheme::kFile) {
    met = OpenFile(method->path, deaths, meeting);
  } else if (method->scheme == Scheme::kTcp) {
    meeting.place.agent_serves = false;
    met = ServeAndConnect(method->host, method->port, options, deaths, meeting);
  } else {
    met = ServeAndConnect(meeting.place.master_addr, meeting.place.master_port, options, deaths,
                          meeting);
  }
  if (!met) return std::move(met).error().In("the store" + PlaceOf(meeting.place));
  return meeting;
}

}  // namespace rankrun::comm
