#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/format.h"
#include "base/net/host_port.h"
#include "base/printable.h"
#include "store/clients/describe.h"
#include "store/clients/tcp_store.h"
#include "store/engine/quoted_key.h"
#include "store/wire/wire.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// Limit per address, so that an address that does not answer leaves time for
// the others.
constexpr milliseconds kMaxConnect{10'000};
// Initial limit for the reply to the greeting. Doubles after each round that
// timed out, because the server may only be slow.
constexpr milliseconds kFirstGreeting{10'000};
// A last attempt with less time than this may time out for lack of time only.
constexpr milliseconds kFairAttempt{1'000};
constexpr milliseconds kMinPause{5};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kMaxPause{2'000};
// More than any server has: the first bytes of another program's text are a larger number.
constexpr int64_t kMaxKeys = int64_t{1} << 32;

TimePoint Now() { return MonotonicClock().Now(); }

// Pauses between attempts to connect. They grow, and each is spread by half, so
// that thousands of clients do not retry in step.
class Backoff {
 public:
  Backoff()
      : random_(static_cast<unsigned>(getpid()) ^
                static_cast<unsigned>(Now().time_since_epoch().count())) {}

  // Pauses before the next attempt. Returns false if too little time is left or
  // if a death was reported. An attempt in the last instant could only time out
  // and would hide the true cause.
  bool Pause(TimePoint deadline, const DeathWatch& deaths) {
    std::uniform_int_distribution<milliseconds::rep> spread(pause_.count() / 2,
                                                            pause_.count() * 3 / 2);
    Duration pause = std::min<Duration>(milliseconds(spread(random_)), (deadline - Now()) / 2);
    if (pause < kMinPause) return false;
    deaths.SleepUntil(Now() + pause);
    pause_ = std::min(pause_ * 3 / 2, kMaxPause);
    return !deaths.has_death();
  }

 private:
  std::minstd_rand random_;
  milliseconds pause_ = kFirstPause;
};

// Limits of an attempt to connect.
struct AttemptLimits {
  TimePoint deadline;
  Duration longest_greeting;
  DeathWatch deaths;
};

// Adds the usual causes to an error of the first round trip, where they are
// few.
Error ExplainGreetingError(Error error) {
  if (error.code == ErrorCode::kTimeout) {
    error.message +=
        ": it accepts connections but does not answer, so it hangs or is not a store server";
  } else if (error.code == ErrorCode::kPeerLost) {
    error.message += ": it does not accept clients from here, or is not a store server";
  }
  return error;
}

// Sends VALIDATE, which has no reply, and a question, and receives the answer.
Result<void> Ask(ClientSocket& socket, const Request& question, std::span<char> answer,
                 TimePoint deadline, const DeathWatch& deaths) {
  auto sent = socket.Send(EncodeValidate() + EncodeRequest(question), deadline, deaths);
  if (!sent) return ExplainGreetingError(std::move(sent).error());
  auto received = socket.Receive(answer, deadline, deaths);
  return received ? Result<void>() : ExplainGreetingError(std::move(received).error());
}

Error NoStoreServer(const ClientSocket& socket, std::string_view answer) {
  return {ErrorCode::kProtocol, "greet " + socket.peer().ToString() +
                                    ": it is not a store server: its answer begins with \"" +
                                    Escaped(answer) + "\""};
}

// Only a store server echoes a PING.
Result<void> Greet(ClientSocket& socket, TimePoint deadline, const DeathWatch& deaths) {
  const auto nonce = static_cast<uint32_t>(getpid());
  uint32_t echo = 0;
  const std::span<char> bytes(reinterpret_cast<char*>(&echo), sizeof echo);
  if (auto ok = Ask(socket, PingRequest{nonce}, bytes, deadline, deaths); !ok) return ok;
  if (echo == nonce) return {};
  return NoStoreServer(socket, {bytes.data(), bytes.size()});
}

// Those of PyTorch 2.3 and 2.4 know no PING, and close the connection. They know the number of
// their keys.
Result<void> GreetOld(ClientSocket& socket, TimePoint deadline, const DeathWatch& deaths) {
  int64_t keys = 0;
  const std::span<char> bytes(reinterpret_cast<char*>(&keys), sizeof keys);
  if (auto ok = Ask(socket, GetNumKeysRequest{}, bytes, deadline, deaths); !ok) return ok;
  if (keys >= 0 && keys < kMaxKeys) return {};
  return NoStoreServer(socket, {bytes.data(), bytes.size()});
}

Result<ClientSocket> ConnectAndGreet(const SocketAddress& address, const AttemptLimits& limits) {
  const DeathWatch& deaths = limits.deaths;
  const auto connect = [&] {
    return ClientSocket::Connect(address, std::min(limits.deadline, DeadlineAfter(kMaxConnect)),
                                 deaths);
  };
  auto socket = connect();
  if (!socket) return socket;
  const TimePoint deadline = std::min(limits.deadline, Now() + limits.longest_greeting);
  auto greeted = Greet(*socket, deadline, deaths);
  if (!greeted && greeted.error().code == ErrorCode::kPeerLost) {
    auto again = connect();
    if (again && GreetOld(*again, deadline, deaths)) return again;
  }
  if (!greeted) return std::move(greeted).error();
  return socket;
}

// Tries each address of the host once. The error lists all failures, with the
// code of the last one. If another program answered at an address, only such
// answers are listed, because a retry will not change them.
Result<ClientSocket> ConnectOnce(const std::string& host, uint16_t port,
                                 const AttemptLimits& limits) {
  auto addresses = SocketAddress::Resolve(host, port);
  if (!addresses) return std::move(addresses).error();
  Error error{ErrorCode::kNotFound, ""};
  auto left = static_cast<Duration::rep>(addresses->size());
  for (const SocketAddress& address : *addresses) {
    TimePoint now = Now();
    AttemptLimits share = limits;
    share.deadline = now + (limits.deadline - now) / left--;
    auto socket = ConnectAndGreet(address, share);
    if (socket || socket.error().code == ErrorCode::kCancelled) return socket;
    if (error.code == ErrorCode::kProtocol) continue;
    if (socket.error().code == ErrorCode::kProtocol) error.message.clear();
    error.code = socket.error().code;
    error.message += (error.message.empty() ? "" : "; ") + socket.error().message;
  }
  return error;
}

// Meaning of an unreachable server.
enum class Absence { kNotYetThere, kGone };

// Returns whether a retry may succeed.
bool IsRetriable(const Error& error, Absence absence) {
  if (error.code == ErrorCode::kPeerLost) return absence == Absence::kNotYetThere;
  return error.code != ErrorCode::kProtocol && error.code != ErrorCode::kCancelled;
}

Result<ClientSocket> ConnectInTime(const std::string& host, uint16_t port,
                                   const TcpStoreOptions& options, Absence absence) {
  TimePoint start = Now();
  TimePoint deadline = DeadlineAfter(options.connect_timeout);
  Backoff backoff;
  int attempts = 1;
  AttemptLimits limits{deadline, kFirstGreeting, options.deaths.OnlyNews()};
  auto socket = ConnectOnce(host, port, limits);
  while (!socket && IsRetriable(socket.error(), absence) &&
         backoff.Pause(deadline, options.deaths)) {
    bool hurried = deadline - Now() < kFairAttempt;
    if (socket.error().code == ErrorCode::kTimeout) {
      limits.longest_greeting = std::min(limits.longest_greeting * 2, deadline - start);
    }
    auto next = ConnectOnce(host, port, limits);
    ++attempts;
    // A time-out of a hurried attempt must not hide the true cause.
    if (!next && next.error().code == ErrorCode::kTimeout && hurried) continue;
    socket = std::move(next);
  }
  if (socket) return socket;
  if (options.deaths.has_death() && IsRetriable(socket.error(), absence)) {
    socket = Error{ErrorCode::kCancelled, options.deaths.Message() + "; " + socket.error().message};
  }
  Error error = std::move(socket).error().In("connect to the store at " + HostPortText(host, port));
  error.message +=
      " (attempt " + std::to_string(attempts) + ", after " + FormatSeconds(Now() - start) + ")";
  return error;
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::Connect(const std::string& host, uint16_t port,
                                                    const TcpStoreOptions& options) {
  auto socket = ConnectInTime(host, port, options, Absence::kNotYetThere);
  if (!socket) return std::move(socket).error();
  return std::unique_ptr<TcpStore>(new TcpStore(std::move(*socket), options));
}

TcpStore::TcpStore(ClientSocket socket, const TcpStoreOptions& options)
    : options_(options),
      local_address_(socket.local()),
      server_address_(socket.peer()),
      socket_(std::move(socket)) {}

Result<std::unique_ptr<Store>> TcpStore::CloneWith(milliseconds timeout,
                                                   milliseconds reply_timeout) {
  TcpStoreOptions options = options_;
  options.connect_timeout = timeout;
  options.reply_timeout = std::min(options_.reply_timeout, reply_timeout);
  auto socket =
      ConnectInTime(server_address_.Host(), server_address_.port(), options, Absence::kGone);
  if (!socket) return std::move(socket).error().In("clone a store");
  return std::unique_ptr<Store>(new TcpStore(std::move(*socket), options));
}

// Asks the server over another connection. PyTorch's server has no such key.
std::string TcpStore::WhyRefused() const {
  constexpr milliseconds kPatience{150};  // of each of three steps
  TcpStoreOptions options = options_;
  options.key_prefix.clear();
  options.asks_why = false;
  options.connect_timeout = options.reply_timeout = kPatience;
  auto socket =
      ConnectInTime(server_address_.Host(), server_address_.port(), options, Absence::kGone);
  if (!socket) return "";
  TcpStore other(std::move(*socket), options);
  const std::string key = std::string(kRefusalKeys) + local_address_.ToString();
  auto is_known = other.Check({&key, 1});
  if (!is_known || !*is_known) return "";
  auto why = other.GetNow(key);
  return why ? *std::move(why) : "";
}

}  // namespace rankrun::store
