#include "agent/supervisor/attempt_store.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "agent/coordination/store_allowlist.h"
#include "agent/process/descendants.h"
#include "agent/process/memory_events.h"
#include "base/log.h"
#include "base/net/host_port.h"
#include "base/net/network_interface.h"
#include "base/net/peer_user.h"
#include "store/store.h"

namespace rankrun::agent {
namespace {

// Time from the opening of a store to its limit of memory, which takes 0.3 ms to
// find out, as long as a tenth of the start of a small job.
constexpr std::chrono::milliseconds kMemoryDelay{100};
constexpr size_t kMaxWaits = 10'000;  // for a report on workers that hang

// Longest pause between two searches for the users of the workers.
constexpr Duration kMaxSearchPause = std::chrono::seconds(1);

constexpr const char* kUserAdvice = "; --store-open admits all users";

// Limits the connections of clients, so that enough descriptors remain for the
// agent and its workers.
size_t ConnectionsWithin(size_t wanted, int workers) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  constexpr size_t kPerWorker = 6;
  size_t ours = 40 + kPerWorker * static_cast<size_t>(workers);
  return std::min(wanted, limit.rlim_cur > ours + 8 ? limit.rlim_cur - ours : 8);
}

// Returns the addresses of this host.
std::vector<AddressRange> OwnRanges() {
  auto own = InterfaceAddresses();
  if (!own) LogWarn(own.error().message);
  return ClientRanges({"127.0.0.1"}, own ? *own : std::vector<std::string>{});
}

// Returns the users of the processes below this one.
std::set<uid_t> UsersOfDescendants() {
  std::set<uid_t> users;
  for (pid_t pid : Descendants()) {
    struct stat status {};
    std::string folder = "/proc/" + std::to_string(pid);
    if (stat(folder.c_str(), &status) == 0) users.insert(status.st_uid);
  }
  return users;
}

// Returns the address of no socket for an invalid text.
SocketAddress AddressOf(const std::string& text, uint16_t port) {
  auto address = SocketAddress::FromNumeric(text, port);
  return address ? *address : SocketAddress();
}

void AddOnce(const SocketAddress& address, std::vector<store::BindAddress>& addresses) {
  bool known = std::ranges::any_of(addresses, [&](const store::BindAddress& other) {
    return other.address.ToString() == address.ToString();
  });
  if (!known) addresses.push_back({.address = address});
}

}  // namespace

size_t UsableMemory(const std::string& root) {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto events = ReadMemoryEvents(root);
  return events && events->limit ? std::min(bytes, static_cast<size_t>(*events->limit)) : bytes;
}

size_t StoreMemory(size_t usable, size_t max_value) {
  constexpr size_t kPart = 8;
  constexpr size_t kMax = size_t{4} << 30;
  return std::max(std::min(usable / kPart, kMax), 2 * max_value);
}

Result<void> AttemptStore::Open(store::ServerOptions::Control control) {
  control_ = std::move(control);
  if (auto found = FindAddresses(); !found) return found;
  if (spec_.nodes && !SharesPort()) return {};
  if (auto listening = Listen(); !listening) return listening;
  if (spec_.nodes) server_->AdmitLater();
  return {};
}

uint16_t AttemptStore::OpenForAttempt() {
  if (std::exchange(was_used_, true)) Renew();
  return port();
}

Result<uint16_t> AttemptStore::OpenForRound() {
  asked_.clear();
  if (SharesPort()) {
    server_->Reset();
  } else {
    server_.reset();
    if (auto opened = Listen(); !opened) return std::move(opened).error();
  }
  server_->AdmitLater();
  return port();
}

void AttemptStore::AdmitOnly(const std::vector<std::string>& clients) {
  if (server_ == nullptr) return;
  auto own = InterfaceAddresses();
  if (!own) LogWarn(own.error().message);
  auto ranges = ClientRanges(clients, own ? *own : std::vector<std::string>{});
  if (ranges.empty()) LogWarn("not all addresses of the nodes are known: the store is open to all");
  server_->AdmitOnly(std::move(ranges));
}

bool AttemptStore::SharesPort() const {
  return spec_.nodes && spec_.nodes->shares_port && spec_.nodes->is_host.value_or(false);
}

Result<void> AttemptStore::FindAddresses() {
  if (spec_.nodes) {
    // It is unknown which of this host's addresses other nodes use.
    addresses_.push_back({.address = *SocketAddress::FromNumeric("0.0.0.0", 0)});
    addresses_.push_back({.address = *SocketAddress::FromNumeric("::", 0), .optional = true});
    return {};
  }
  bool is_open = spec_.store_open && spec_.master_addr_typed && !IsLoopback(spec_.master_addr);
  const char* v4 = is_open ? "0.0.0.0" : "127.0.0.1";
  const char* v6 = is_open ? "::" : "::1";
  addresses_.push_back({.address = *SocketAddress::FromNumeric(v4, 0)});
  addresses_.push_back({.address = *SocketAddress::FromNumeric(v6, 0), .optional = true});
  if (!spec_.master_addr_typed) return {};
  auto found = SocketAddress::Resolve(spec_.master_addr, 0);
  if (!found) {
    return Error{ErrorCode::kInvalid,
                 spec_.master_addr_origin + " " + spec_.master_addr + ": " + found.error().message};
  }
  if (is_open) {
    if (!IsThisHost(*found)) {
      LogWarn(spec_.master_addr_origin + " " + spec_.master_addr +
              " is no address of this host, where the workers' store is: workers may not reach it");
    }
    return {};
  }
  for (const SocketAddress& address : *found) AddOnce(address, addresses_);
  return {};
}

Result<void> AttemptStore::Listen() {
  store::ServerOptions options;
  options.addresses = addresses_;
  options.control = control_;
  uint16_t wanted = spec_.master_port.value_or(0);
  if (spec_.nodes) wanted = SharesPort() ? spec_.nodes->endpoints[0].port : 0;
  for (auto& bind : options.addresses) bind.address = bind.address.WithPort(wanted);
  bool is_exposed = !spec_.nodes && spec_.master_addr_typed;
  if (is_exposed && !spec_.store_open) options.admission.allowed = OwnRanges();
  if (!spec_.store_open) {
    options.admits_user = [this](uid_t user) { return Admits(user); };
    options.user_advice = kUserAdvice;
    if (ask_ && HasSecret()) options.ask_whose = [this](const auto& client) { Ask(client); };
  }
  options.admission.connections = ConnectionsWithin(options.admission.connections, spec_.workers);
  if (spec_.store_max_value) options.limits.AllowValues(*spec_.store_max_value);
  options.on_refusal = [this](const auto& refusal) { OnRefusal(refusal); };
  auto server = store::Server::Listen(loop_, std::move(options));
  if (server) {
    server_ = std::move(*server);
    memory_timer_.Start(kMemoryDelay);
    return {};
  }
  std::string typed;  // the setting that is at fault
  if (spec_.master_addr_typed) typed = spec_.master_addr_origin + " " + spec_.master_addr;
  if (spec_.master_port) {
    const std::string& text = spec_.master_port_text;
    typed =
        spec_.master_port_origin + " " + (text.empty() ? std::to_string(*spec_.master_port) : text);
  }
  if (typed.empty()) return std::move(server).error();
  return Error{ErrorCode::kInvalid, typed + ": " + server.error().message};
}

// Admits this process's user, root, and the users of the workers, which may have
// changed theirs. Strangers cause the search for these, so that it may take a
// fifth of the time at most.
bool AttemptStore::Admits(uid_t user) {
  if (IsOwnUserOrRoot(user) || worker_users_.contains(user)) return true;
  TimePoint begin = MonotonicClock().Now();
  if (begin < next_search_) return false;
  worker_users_ = UsersOfDescendants();
  TimePoint end = MonotonicClock().Now();
  next_search_ = end + std::min(4 * (end - begin), kMaxSearchPause);
  return worker_users_.contains(user);
}

// Without a secret, any program could pose as the node of the client.
bool AttemptStore::HasSecret() const {
  return spec_.nodes && !(spec_.nodes->secret.empty() && spec_.nodes->munge_credential.empty());
}

void AttemptStore::Ask(const store::ServerOptions::RemoteClient& client) {
  asked_[++last_question_] = client.id;
  ask_({.id = last_question_,
        .address = client.peer.Host(),
        .port = client.peer.port(),
        .store_address = client.local.Host(),
        .store_port = client.local.port()});
}

void AttemptStore::OnVerdict(const ClientVerdict& verdict) {
  auto asked = asked_.extract(verdict.id);
  if (asked.empty() || server_ == nullptr) return;
  server_->OnVouched(asked.mapped(), verdict.why + (verdict.is_of_user ? kUserAdvice : ""));
}

void AttemptStore::ForgetWorkers() {
  worker_users_.clear();
  next_search_ = {};
}

ClientVerdicts AttemptStore::Judge(const WhoseClients& question) {
  std::vector<PeerUsers::Ends> connections;
  for (const StoreClient& asked : question.clients) {
    connections.push_back({.server = AddressOf(asked.store_address, asked.store_port),
                           .client = AddressOf(asked.address, asked.port)});
  }
  auto admits = [this](uid_t user) { return spec_.store_open || Admits(user); };
  auto reasons = peer_users_.ReasonsToRefuse(connections, admits);
  ClientVerdicts answer;
  for (size_t i = 0; i < reasons.size(); ++i) {
    auto& [why, is_of_user] = reasons[i];
    answer.verdicts.push_back({question.clients[i].id, std::move(why), is_of_user});
  }
  return answer;
}

void AttemptStore::OnRefusal(store::ServerOptions::Refusal refusal) {
  const bool is_of_value = refusal.why.find(" with a value of ") != std::string::npos;
  if (is_of_value) refusal.why += "; --store-max-value allows larger values";
  const SocketAddress client = refusal.client;
  refusals_.Note(std::move(refusal), port(), [this, client](const std::string& why) {
    if (server_ != nullptr) server_->NameRefusal(client, why);
  });
}

void AttemptStore::LimitMemory() {
  if (server_ == nullptr) return;
  if (usable_memory_ == 0) usable_memory_ = UsableMemory();
  size_t max_value = spec_.store_max_value.value_or(store::WireLimits{}.value_bytes);
  server_->LimitMemory(StoreMemory(usable_memory_, max_value));
}

std::vector<std::pair<std::string, uint16_t>> AttemptStore::Waits() const {
  std::vector<std::pair<std::string, uint16_t>> waits;
  if (server_ == nullptr) return waits;
  for (const auto& waited : server_->ListWaits(kMaxWaits)) {
    if (waited.name.ends_with(store::kNewsMark)) continue;
    // Clients put a "/" before the keys of their users.
    std::string name = waited.name.starts_with('/') ? waited.name.substr(1) : waited.name;
    for (uint16_t port : waited.ports) waits.emplace_back(name, port);
  }
  return waits;
}

void AttemptStore::Renew() {
  if (!spec_.master_port) {
    std::unique_ptr<store::Server> old = std::move(server_);
    auto opened = Listen();
    if (opened) return;
    LogWarn(opened.error().message + "; the store stays at port " + std::to_string(old->port()));
    server_ = std::move(old);
  }
  server_->Reset();
}

}  // namespace rankrun::agent
