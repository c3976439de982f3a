#include "comm/rendezvous.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "comm/group.h"
#include "comm/store_state.h"
#include "store/file_store.h"
#include "store/tcp_store.h"

namespace rankrun::comm {
namespace {

using Scheme = InitMethod::Scheme;

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

struct Whole {
  const char* name;
  int min;
  int max;
};

Result<int> NumberIn(const std::string& url, const Whole& number, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= number.min && value <= number.max) return value;
  return Invalid("init_method \"" + url + "\": " + number.name + " is \"" + std::string(text) +
                 "\": want a whole number " + std::to_string(number.min) + ".." +
                 std::to_string(number.max));
}

Result<void> ReadQuery(const std::string& url, std::string_view query, InitMethod& method) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::string key(pair.substr(0, pair.find('=')));
    const std::string_view value = pair.substr(std::min(pair.size(), key.size() + 1));
    if (key != "rank" && key != "world_size") {
      return Invalid("init_method \"" + url + "\": there is no key \"" + key +
                     "\": want rank or world_size");
    }
    const Result<int> number =
        NumberIn(url, {.name = key.c_str(), .min = 0, .max = 1 << 30}, value);
    if (!number) return number.error();
    (key == "rank" ? method.rank : method.world_size) = *number;
  }
  return {};
}

Result<void> ReadAddress(const std::string& url, std::string_view address, InitMethod& method) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || address.ends_with(']')) {
    return Invalid("init_method \"" + url + "\" has no port: want tcp://host:port");
  }
  // Port 0 would be another one on rank 0, which nobody else could know.
  const Result<int> port =
      NumberIn(url, {.name = "the port", .min = 1, .max = 65535}, address.substr(colon + 1));
  if (!port) return port.error();
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return Invalid("init_method \"" + url + "\" has no host: want tcp://host:port");
  method.host = host;
  method.port = static_cast<uint16_t>(*port);
  return {};
}

// What is told twice must not differ, nor be hidden: torch refuses it as well.
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
  const bool has_store = options.store != nullptr;
  const auto lacks = [&](const std::optional<int>& value, const char* variable) {
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
  const bool serves = meeting.place.global_rank == 0 && !meeting.place.agent_serves;
  if (serves) {
    auto server = ServeStore(host, port);
    if (!server) return std::move(server).error();
    meeting.server = *std::move(server);
  }
  return Connect(host, port, options, deaths, meeting);
}

Result<void> OpenFile(const std::string& path, const DeathWatch& deaths, Meeting& meeting) {
  const std::string run = "rankrun/" + std::to_string(meeting.place.world_size);
  auto store = store::FileStore::Open(path, run, {.deaths = deaths});
  if (!store) return std::move(store).error();
  meeting.store = *std::move(store);
  meeting.host = "127.0.0.1";
  return {};
}

}  // namespace

Result<InitMethod> ParseInitMethod(const std::string& url) {
  InitMethod method;
  const size_t mark = url.find('?');
  const std::string_view text(url);
  const std::string_view target = text.substr(0, mark);
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
  const Result<InitMethod> method = ParseInitMethod(options.init_method);
  if (!method) return method.error();
  if (options.store && options.init_method != InitOptions().init_method) {
    return Invalid("store and init_method are both given: want one");
  }
  const Result<Given> given = GivenBy(options, *method, get);
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
