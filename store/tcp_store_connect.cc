#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/format.h"
#include "base/printable.h"
#include "store/describe.h"
#include "store/tcp_store.h"
#include "store/wire.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// So that one address that answers nothing leaves time for the others.
constexpr milliseconds kLongestConnect{10'000};
// Twice as long after each round that ended so: the server may only be slow.
constexpr milliseconds kFirstGreeting{10'000};
// A last attempt that has less may time out just because it was the last.
constexpr milliseconds kFairAttempt{1'000};
constexpr milliseconds kShortestPause{5};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{2'000};

TimePoint Now() { return MonotonicClock().Now(); }

// The pauses between attempts to connect: growing, and each spread by half, so
// that thousands of clients do not come back in step.
class Backoff {
 public:
  Backoff()
      : random_(static_cast<unsigned>(getpid()) ^
                static_cast<unsigned>(Now().time_since_epoch().count())) {}

  // Whether there is time for another attempt, after a pause, and nobody has
  // died. None is made in the last instant: it could only time out, and would
  // hide the true cause.
  bool Pause(TimePoint deadline, const DeathWatch& deaths) {
    std::uniform_int_distribution<milliseconds::rep> spread(pause_.count() / 2,
                                                            pause_.count() * 3 / 2);
    Duration pause = std::min<Duration>(milliseconds(spread(random_)), (deadline - Now()) / 2);
    if (pause < kShortestPause) return false;
    deaths.SleepUntil(Now() + pause);
    pause_ = std::min(pause_ * 3 / 2, kLongestPause);
    return !deaths.told();
  }

 private:
  std::minstd_rand random_;
  milliseconds pause_ = kFirstPause;
};

// How long an attempt may take.
struct Patience {
  TimePoint deadline;
  Duration longest_greeting;
  DeathWatch deaths;
};

// What an error of the connection means in its first round trip, where the
// usual causes are few.
Error ExplainedAtGreeting(Error error) {
  if (error.code == ErrorCode::kTimeout) {
    error.message +=
        ": it takes connections and answers nothing, so it hangs or is no store server";
  } else if (error.code == ErrorCode::kPeerLost) {
    error.message += ": it takes no clients from here, or is no store server";
  }
  return error;
}

// VALIDATE has no reply, so a PING follows: only a store server echoes it.
Result<void> Greet(ClientSocket& socket, TimePoint deadline, const DeathWatch& deaths) {
  const auto nonce = static_cast<uint32_t>(getpid());
  auto sent = socket.Send(EncodeValidate() + EncodeRequest(PingRequest{nonce}), deadline, deaths);
  if (!sent) return ExplainedAtGreeting(std::move(sent).error());
  uint32_t echo = 0;
  const std::span<char> bytes(reinterpret_cast<char*>(&echo), sizeof echo);
  if (auto received = socket.Receive(bytes, deadline, deaths); !received) {
    return ExplainedAtGreeting(std::move(received).error());
  }
  if (echo == nonce) return {};
  return Error{ErrorCode::kProtocol, "greet " + socket.peer().ToString() +
                                         ": it is no store server: its answer begins with \"" +
                                         Escaped({bytes.data(), bytes.size()}) + "\""};
}

Result<ClientSocket> ConnectAndGreet(const SocketAddress& address, const Patience& patience) {
  const DeathWatch& deaths = patience.deaths;
  const TimePoint deadline = std::min(patience.deadline, DeadlineAfter(kLongestConnect));
  auto socket = ClientSocket::Connect(address, deadline, deaths);
  if (!socket) return socket;
  auto greeted =
      Greet(*socket, std::min(patience.deadline, Now() + patience.longest_greeting), deaths);
  if (!greeted) return std::move(greeted).error();
  return socket;
}

// One attempt at each address of the host. The error tells of all, with the
// code of the last; or of one where another program answered: pausing will not
// change that.
Result<ClientSocket> ConnectOnce(const std::string& host, uint16_t port, const Patience& patience) {
  auto addresses = SocketAddress::Resolve(host, port);
  if (!addresses) return std::move(addresses).error();
  Error error{ErrorCode::kNotFound, ""};
  auto left = static_cast<Duration::rep>(addresses->size());
  for (const SocketAddress& address : *addresses) {
    const TimePoint now = Now();
    Patience share = patience;
    share.deadline = now + (patience.deadline - now) / left--;
    auto socket = ConnectAndGreet(address, share);
    if (socket || socket.error().code == ErrorCode::kCancelled) return socket;
    if (error.code == ErrorCode::kProtocol) continue;
    if (socket.error().code == ErrorCode::kProtocol) error.message.clear();
    error.code = socket.error().code;
    error.message += (error.message.empty() ? "" : "; ") + socket.error().message;
  }
  return error;
}

// What a server that nobody can reach is taken for.
enum class Absence { kNotYetThere, kGone };

// Whether another attempt may end otherwise.
bool MayChange(const Error& error, Absence absence) {
  if (error.code == ErrorCode::kPeerLost) return absence == Absence::kNotYetThere;
  return error.code != ErrorCode::kProtocol && error.code != ErrorCode::kCancelled;
}

Result<ClientSocket> ConnectInTime(const std::string& host, uint16_t port,
                                   const TcpStoreOptions& options, Absence absence) {
  const TimePoint start = Now();
  const TimePoint deadline = DeadlineAfter(options.connect_timeout);
  Backoff backoff;
  int attempts = 1;
  Patience patience{deadline, kFirstGreeting, options.deaths.News()};
  auto socket = ConnectOnce(host, port, patience);
  while (!socket && MayChange(socket.error(), absence) && backoff.Pause(deadline, options.deaths)) {
    const bool hurried = deadline - Now() < kFairAttempt;
    if (socket.error().code == ErrorCode::kTimeout) {
      patience.longest_greeting = std::min(patience.longest_greeting * 2, deadline - start);
    }
    auto next = ConnectOnce(host, port, patience);
    ++attempts;
    // That there was no time for an answer does not hide the true cause.
    if (!next && next.error().code == ErrorCode::kTimeout && hurried) continue;
    socket = std::move(next);
  }
  if (socket) return socket;
  if (options.deaths.told() && MayChange(socket.error(), absence)) {
    socket = Error{ErrorCode::kCancelled, options.deaths.Word() + "; " + socket.error().message};
  }
  Error error =
      std::move(socket).error().In("connect to the store at " + host + ":" + std::to_string(port));
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

}  // namespace rankrun::store
