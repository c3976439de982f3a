#include "comm/world/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/host_name.h"
#include "base/log.h"
#include "base/net/host_port.h"
#include "base/net/network_interface.h"
#include "base/parse_number.h"
#include "comm/core/time_left.h"
#include "comm/group/group.h"
#include "comm/stores/shared_servers.h"
#include "comm/stores/store_state.h"
#include "comm/world/mpi_launcher.h"
#include "store/clients/prefix_store.h"
#include "store/clients/tcp_store.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using Scheme = InitMethod::Scheme;

constexpr milliseconds kReconnectPause{5};

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

// A slash may end the address, as in torch.
Result<void> ReadAddress(const std::string& url, std::string_view address, InitMethod& method) {
  if (address.ends_with('/')) address.remove_suffix(1);
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

Error Missing(const std::string& names, bool has_store) {
  const char* wanted = has_store ? "a store needs rank and world_size, as options"
                                 : "tcp:// and file:// need rank and world_size, as options, as "
                                   "?rank=0&world_size=2, or in RANK and WORLD_SIZE";
  return Invalid(names + " missing: " + wanted);
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
  bool lacks_rank = lacks(given.global_rank, "RANK");
  bool lacks_size = lacks(given.world_size, "WORLD_SIZE");
  if (lacks_rank && lacks_size) return Missing("rank and world_size are", has_store);
  if (lacks_rank) return Missing("rank is", has_store);
  if (lacks_size) return Missing("world_size is", has_store);
  return given;
}

Result<void> Connect(const HostPort& server, milliseconds timeout, const DeathWatch& deaths,
                     Meeting& meeting) {
  auto store = store::TcpStore::Connect(server.host, *server.port,
                                        {.connect_timeout = timeout, .deaths = deaths});
  if (!store) return Error{ErrorCode::kPeerLost, std::move(store).error().message};
  meeting.host = ListenHost(meeting.place, (*store)->local_address().Host());
  meeting.store = *std::move(store);
  return {};
}

std::string ContextPrefix(const Environment& place, const WorldNumber& world) {
  return "rankrun/attempt_" + std::to_string(place.attempt) +
         (world.context.empty() ? "" : "/context_" + world.context);
}

// Its value is the lowest generation that this rank may make in the store.
std::string NextWorldKey(const Environment& place, const WorldNumber& world) {
  return ContextPrefix(place, world) + "/next_world/" + std::to_string(place.global_rank);
}

// Numbers the world once the store is known. All ranks find the same number, because each has
// made as many worlds there as the others.
Result<void> NumberWorld(Meeting& meeting) {
  auto next = meeting.store->Add(NextWorldKey(meeting.place, meeting.world), 0);
  if (!next) return std::move(next).error();
  meeting.world.generation = std::max(meeting.world.generation, static_cast<int>(*next));
  meeting.key_prefix = WorldPrefix(meeting.place, meeting.world);
  return {};
}

// Set by rank 0 in the store that it serves, before any other key of the world.
std::string OpenKey(const Meeting& meeting) { return meeting.key_prefix + "/open"; }

// Returns a sentence if the address of the store is another host's; else "". Such an address may
// be right: it may be forwarded to this host.
std::string ForeignAddress(const std::string& host, const Meeting& meeting) {
  auto is_here = IsThisHost(host);
  if (!is_here || *is_here) return "";
  const char* source = meeting.place.master_addr.empty() ? "init_method" : "MASTER_ADDR";
  return "rank 0 serves the store on this host, but " + host + " (" + source +
         ") is no address of this host";
}

Result<void> Serve(const HostPort& address, milliseconds timeout, const DeathWatch& deaths,
                   Meeting& meeting) {
  auto server = SharedServers::OfThisProcess().At(address.host, *address.port);
  if (!server) return std::move(server).error();
  meeting.server = std::move(server->server);
  std::string foreign = ForeignAddress(address.host, meeting);
  if (!foreign.empty()) LogWarn(foreign);
  if (auto ok = Connect(address, timeout, deaths, meeting); !ok) {
    Error error = std::move(ok).error();
    if (!foreign.empty()) error.message += "; " + foreign;
    return error;
  }
  if (auto ok = NumberWorld(meeting); !ok) return ok;
  return meeting.store->Set(OpenKey(meeting), "");
}

Result<void> AwaitOpen(TimePoint deadline, Meeting& meeting) {
  if (auto ok = NumberWorld(meeting); !ok) return ok;
  const std::string key = OpenKey(meeting);
  return meeting.store->Wait(std::span(&key, 1), TimeLeft(deadline));
}

// A rank may be faster than rank 0 and connect to the store of the world
// before, also of an earlier program, which then ends.
Result<void> ConnectOnceOpen(const HostPort& server, milliseconds timeout, const DeathWatch& deaths,
                             Meeting& meeting) {
  TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  const WorldNumber own = meeting.world;
  for (;;) {
    if (auto ok = Connect(server, TimeLeft(deadline), deaths, meeting); !ok) return ok;
    meeting.world = own;
    auto open = AwaitOpen(deadline, meeting);
    if (open) return {};
    bool is_ended = open.error().code == ErrorCode::kPeerLost;
    if (!is_ended || TimeLeft(deadline) == milliseconds(0)) {
      return Error(open.error()).In("wait for rank 0 to serve this world");
    }
    deaths.SleepUntil(std::chrono::steady_clock::now() + kReconnectPause);
  }
}

Result<void> ServeOrConnect(const HostPort& server, const InitOptions& options,
                            const DeathWatch& deaths, Meeting& meeting) {
  milliseconds timeout = Bounded(options.timeout);
  if (meeting.place.agent_serves) return Connect(server, timeout, deaths, meeting);
  meeting.store_rank = 0;
  if (meeting.place.global_rank == 0) return Serve(server, timeout, deaths, meeting);
  return ConnectOnceOpen(server, timeout, deaths, meeting);
}

std::string ClaimKey(const Meeting& meeting, int global_rank) {
  return meeting.key_prefix + "/came/" + std::to_string(global_rank);
}

// Fails if another process has already claimed this rank in this world. Called
// first, because the keys of the other process would mislead this one.
Result<void> ClaimRank(const Meeting& meeting, const InitOptions& options) {
  auto times = meeting.store->Add(ClaimKey(meeting, meeting.place.global_rank), 1);
  if (!times) return times.error();
  if (*times == 1) return {};
  std::string where = options.store ? "the store" : options.init_method;
  const char* cause =
      "what ranks meet in is left from another run, or from a program that failed in Init or "
      "ended without Destroy(): want a new one for each run";
  if (meeting.file) {
    where += " (" + meeting.file->age + ")";
  } else if (meeting.place.agent_serves) {
    cause =
        "an earlier program of this worker has failed in Init or ended without Destroy(): want "
        "a rankrun for each program, or Init and Destroy() to succeed in each";
  }
  return Invalid(where + PlaceOf(meeting.place) +
                 ": this rank has been here before: another "
                 "process has the same rank, or " +
                 cause);
}

// Errors of the system are a DistStoreError, as from FileStore.
Error OfStore(Error error) {
  const bool is_of_system = error.code == ErrorCode::kSystem ||
                            error.code == ErrorCode::kNotFound ||
                            error.code == ErrorCode::kExhausted;
  if (is_of_system) error.code = ErrorCode::kProtocol;
  return error;
}

Result<void> OpenFile(const std::string& path, const InitOptions& options, const DeathWatch& deaths,
                      Meeting& meeting) {
  const std::string rank = "rank " + std::to_string(meeting.place.global_rank);
  const std::string process = " (pid " + std::to_string(getpid()) + " on " + HostName() + ")";
  meeting.file = MeetingFile{
      .path = path, .world = "rankrun", .attempt = meeting.place.attempt, .user = rank + process};
  TimePoint deadline = std::chrono::steady_clock::now() + Bounded(options.timeout);
  auto store = EnterFile(*meeting.file, deadline, deaths);
  if (!store) return OfStore(std::move(store).error());
  meeting.store = *std::move(store);
  meeting.host = "127.0.0.1";
  return {};
}

// Returns whether the agent serves the store at that port. Its host may have
// several names.
bool IsAgents(const InitMethod& method, const Meeting& meeting, const GetVariable& get) {
  const char* port = get("MASTER_PORT");
  return meeting.place.agent_serves && port != nullptr &&
         ParseNumber<uint16_t>(port) == method.port;
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

std::string WorldPrefix(const Environment& place, const WorldNumber& world) {
  return ContextPrefix(place, world) + "/world_" + std::to_string(world.generation);
}

void LeaveTo(const WorldNumber& next, const Environment& place, store::Store& store) {
  static_cast<void>(store.Set(NextWorldKey(place, next), std::to_string(next.generation)));
}

// Returns the address at which other ranks reach this one: that of the connection to a store of
// the program, if it has one.
std::string HostFor(const store::Store& store, const Environment& place) {
  const auto* client = dynamic_cast<const store::TcpStore*>(&store::BelowPrefixes(store));
  return client != nullptr ? ListenHost(place, client->local_address().Host()) : "127.0.0.1";
}

Result<Meeting> Meet(const InitOptions& options, const WorldNumber& world,
                     const GetVariable& get_variable, const DeathWatch& deaths) {
  const GetVariable get = WithMpiLauncher(get_variable);
  Result<InitMethod> method = ParseInitMethod(options.init_method);
  if (!method) return method.error();
  if (options.store && options.init_method != InitOptions().init_method) {
    return Invalid("store and init_method are both given: want one");
  }
  Result<Given> given = GivenBy(options, *method, get);
  if (!given) return given.error();
  auto environment = ReadEnvironment(get, *given);
  if (!environment) return std::move(environment).error();
  Meeting meeting{.place = *std::move(environment), .world = world};
  Result<void> met;
  if (options.store) {
    auto own = StoreState::ClientOf(options.store, Bounded(options.timeout));
    if (!own) return std::move(own).error();
    meeting.store = *std::move(own);
    meeting.host = HostFor(*meeting.store, meeting.place);
    meeting.place.agent_serves = false;
  } else if (method->scheme == Scheme::kFile) {
    met = OpenFile(method->path, options, deaths, meeting);
  } else if (method->scheme == Scheme::kTcp) {
    meeting.place.agent_serves = IsAgents(*method, meeting, get);
    met = ServeOrConnect({method->host, method->port}, options, deaths, meeting);
  } else {
    met = ServeOrConnect({meeting.place.master_addr, meeting.place.master_port}, options, deaths,
                         meeting);
  }
  if (met && !meeting.store_rank) met = NumberWorld(meeting);
  if (met) {
    met = ClaimRank(meeting, options);
  } else {
    met = std::move(met).error().In("the store" + PlaceOf(meeting.place));
  }
  if (met) return meeting;
  if (meeting.file && meeting.store) LeaveFile(*meeting.file, *meeting.store);
  return std::move(met).error();
}

bool HasCome(const Meeting& meeting, int global_rank) {
  const std::string key = ClaimKey(meeting, global_rank);
  auto came = meeting.store->Check(std::span(&key, 1));
  return came && *came;
}

}  // namespace rankrun::comm
