#include "store/tcp_store.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <thread>

#include "base/format.h"
#include "store/wire.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// So that one address that answers nothing leaves time for the others.
constexpr milliseconds kLongestAttempt{10'000};
constexpr milliseconds kShortestPause{5};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{2'000};

constexpr size_t kKeysNamedInErrors = 8;

TimePoint Now() { return MonotonicClock().Now(); }

// A time-out that would end after the end of time is a year.
TimePoint After(milliseconds timeout) {
  constexpr milliseconds kForever = std::chrono::hours(24 * 365);
  return Now() + std::clamp(timeout, milliseconds(0), kForever);
}

template <typename T>
std::span<char> BytesOf(T& value) {
  return {reinterpret_cast<char*>(&value), sizeof value};
}

std::string WireKey(std::string_view key) { return std::string(1, '/').append(key); }

std::vector<std::string> WireKeys(std::span<const std::string> keys) {
  std::vector<std::string> wire_keys;
  wire_keys.reserve(keys.size());
  for (const std::string& key : keys) wire_keys.push_back(WireKey(key));
  return wire_keys;
}

// "key a", "keys a, b, c and 12 more"
std::string Describe(std::span<const std::string> keys) {
  std::string text = keys.size() == 1 ? "key" : "keys";
  size_t named = std::min(keys.size(), kKeysNamedInErrors);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? " " : ", ") + keys[i];
  if (named < keys.size()) text += " and " + std::to_string(keys.size() - named) + " more";
  return text;
}

Error NotSetInTime(const std::string& what, milliseconds timeout) {
  return Error{ErrorCode::kTimeout,
               what + ": not set within " + std::to_string(timeout.count()) + " ms"};
}

// The pauses between attempts to connect: growing, and each spread by half, so
// that thousands of clients do not come back in step.
class Backoff {
 public:
  Backoff()
      : random_(static_cast<unsigned>(getpid()) ^
                static_cast<unsigned>(Now().time_since_epoch().count())) {}

  // Whether there is time for another attempt, after a pause. None is made in
  // the last instant: it could only time out, and would hide the true cause.
  bool Pause(TimePoint deadline) {
    std::uniform_int_distribution<milliseconds::rep> spread(pause_.count() / 2,
                                                            pause_.count() * 3 / 2);
    Duration pause = std::min<Duration>(milliseconds(spread(random_)), (deadline - Now()) / 2);
    if (pause < kShortestPause) return false;
    std::this_thread::sleep_for(pause);
    pause_ = std::min(pause_ * 3 / 2, kLongestPause);
    return true;
  }

 private:
  std::minstd_rand random_;
  milliseconds pause_ = kFirstPause;
};

std::string Printable(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '.';
  return text;
}

// VALIDATE has no reply, so a PING follows: only a store server echoes it.
Result<void> Greet(ClientSocket& socket, TimePoint deadline) {
  const auto nonce = static_cast<uint32_t>(getpid());
  auto sent = socket.Send(EncodeValidate() + EncodeRequest(PingRequest{nonce}), deadline);
  if (!sent) return sent;
  uint32_t echo = 0;
  if (auto received = socket.Receive(BytesOf(echo), deadline); !received) return received;
  if (echo == nonce) return {};
  std::span<char> bytes = BytesOf(echo);
  return Error{ErrorCode::kProtocol, "greet " + socket.peer().ToString() +
                                         ": it is no store server: its answer begins with \"" +
                                         Printable({bytes.data(), bytes.size()}) + "\""};
}

Result<ClientSocket> ConnectAndGreet(const SocketAddress& address, TimePoint deadline) {
  auto socket = ClientSocket::Connect(address, std::min(deadline, After(kLongestAttempt)));
  if (!socket) return socket;
  auto greeted = Greet(*socket, deadline);
  if (!greeted) return std::move(greeted).error();
  return socket;
}

// One attempt at each address of the host. The error is that of the last, or
// of one where another program answered: pausing will not change that.
Result<ClientSocket> ConnectOnce(const std::string& host, uint16_t port, TimePoint deadline) {
  auto addresses = SocketAddress::Resolve(host, port);
  if (!addresses) return std::move(addresses).error();
  Error error{ErrorCode::kNotFound, "look up " + host + ": no address"};
  for (const SocketAddress& address : *addresses) {
    auto socket = ConnectAndGreet(address, deadline);
    if (socket) return socket;
    if (error.code != ErrorCode::kProtocol) error = std::move(socket).error();
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::Connect(const std::string& host, uint16_t port,
                                                    const TcpStoreOptions& options) {
  const TimePoint start = Now();
  const TimePoint deadline = After(options.connect_timeout);
  Backoff backoff;
  int attempts = 1;
  auto socket = ConnectOnce(host, port, deadline);
  while (!socket && socket.error().code != ErrorCode::kProtocol && backoff.Pause(deadline)) {
    socket = ConnectOnce(host, port, deadline);
    ++attempts;
  }
  if (socket) {
    return std::unique_ptr<TcpStore>(new TcpStore(std::move(*socket), options.reply_timeout));
  }
  Error error =
      std::move(socket).error().In("connect to the store at " + host + ":" + std::to_string(port));
  error.message +=
      " (attempt " + std::to_string(attempts) + ", after " + FormatSeconds(Now() - start) + ")";
  return error;
}

TcpStore::TcpStore(ClientSocket socket, milliseconds reply_timeout)
    : local_address_(socket.local()), reply_timeout_(reply_timeout), socket_(std::move(socket)) {}

Result<void> TcpStore::Set(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  auto told = Send(SetRequest{WireKey(key), std::string(value)}, ReplyDeadline());
  if (!told) return std::move(told).error().In("set key " + std::string(key));
  return told;
}

Result<std::string> TcpStore::Get(std::string_view key, milliseconds timeout) {
  std::lock_guard lock(mutex_);
  const std::string name(key);
  const std::string what = "get key " + name;
  auto came = AwaitKeys({&name, 1}, timeout);
  if (!came) return std::move(came).error().In(what);
  if (!*came) return NotSetInTime(what, timeout);
  auto value = AskValue(GetRequest{WireKey(key)});
  if (!value) return std::move(value).error().In(what);
  return value;
}

Result<int64_t> TcpStore::Add(std::string_view key, int64_t delta) {
  std::lock_guard lock(mutex_);
  auto sum = AskNumber(AddRequest{WireKey(key), delta});
  if (!sum) return std::move(sum).error().In("add to key " + std::string(key));
  return sum;
}

Result<bool> TcpStore::Check(std::span<const std::string> keys) {
  std::lock_guard lock(mutex_);
  const TimePoint deadline = ReplyDeadline();
  auto sent = Send(CheckRequest{WireKeys(keys)}, deadline);
  if (!sent) return std::move(sent).error().In("check " + Describe(keys));
  auto reply = ReceiveByte(CheckReply::kNotReady, deadline);
  if (!reply) return std::move(reply).error().In("check " + Describe(keys));
  return *reply == CheckReply::kReady;
}

Result<void> TcpStore::Wait(std::span<const std::string> keys, milliseconds timeout) {
  std::lock_guard lock(mutex_);
  auto came = AwaitKeys(keys, timeout);
  if (!came) return std::move(came).error().In("wait for " + Describe(keys));
  if (!*came) return NotSetInTime("wait for " + Describe(keys), timeout);
  return {};
}

Result<CompareSetResult> TcpStore::CompareSet(std::string_view key, std::string_view expected,
                                              std::string_view desired) {
  std::lock_guard lock(mutex_);
  auto value =
      AskValue(CompareSetRequest{WireKey(key), std::string(expected), std::string(desired)});
  if (!value) return std::move(value).error().In("compare and set key " + std::string(key));
  bool swapped = *value == desired;
  return CompareSetResult{std::move(*value), swapped};
}

Result<bool> TcpStore::Delete(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto count = AskNumber(DeleteKeyRequest{WireKey(key)});
  if (!count) return std::move(count).error().In("delete key " + std::string(key));
  return *count > 0;
}

Result<int64_t> TcpStore::AskNumber(const Request& request) {
  const TimePoint deadline = ReplyDeadline();
  if (auto sent = Send(request, deadline); !sent) return std::move(sent).error();
  int64_t number = 0;
  auto received = Receive(BytesOf(number), deadline);
  if (!received) return std::move(received).error();
  return number;
}

Result<std::string> TcpStore::AskValue(const Request& request) {
  const TimePoint deadline = ReplyDeadline();
  if (auto sent = Send(request, deadline); !sent) return std::move(sent).error();
  uint64_t length = 0;
  auto received = Receive(BytesOf(length), deadline);
  // In pieces, so that memory is taken for what has arrived only.
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  std::string value;
  while (received && value.size() < length) {
    size_t start = value.size();
    value.resize(start + std::min(kPiece, length - start));
    received = Receive(std::span(value).subspan(start), deadline);
  }
  if (!received) return std::move(received).error();
  return value;
}

// Whether the keys came in time.
Result<bool> TcpStore::AwaitKeys(std::span<const std::string> keys, milliseconds timeout) {
  const TimePoint deadline = After(timeout);
  auto sent = Send(WaitRequest{WireKeys(keys)}, ReplyDeadline());
  if (!sent) return std::move(sent).error();
  auto readable = socket_.WaitReadable(deadline);
  if (!readable) return Break(std::move(readable).error());
  if (!*readable) return CancelWait();
  auto reply = ReceiveByte(WaitReply::kStopWaiting, ReplyDeadline());
  if (!reply) return std::move(reply).error();
  return true;
}

// Takes a WAIT back. The keys may come before the server knows that; it has
// then sent the reply of WAIT, and that of CANCEL_WAIT comes after it.
Result<bool> TcpStore::CancelWait() {
  const TimePoint deadline = ReplyDeadline();
  if (auto sent = Send(CancelWaitRequest{}, deadline); !sent) return std::move(sent).error();
  auto first = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!first) return std::move(first).error();
  if (*first == WaitReply::kWaitCanceled) return false;
  auto second = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!second) return std::move(second).error();
  if (*second == WaitReply::kWaitCanceled) return true;
  return Break({ErrorCode::kProtocol, "the server has ended one wait twice"});
}

Result<void> TcpStore::Send(const Request& request, TimePoint deadline) {
  if (broken_) {
    return Error{ErrorCode::kPeerLost, "the connection broke earlier: " + *broken_};
  }
  auto sent = socket_.Send(EncodeRequest(request), deadline);
  if (!sent) return Break(std::move(sent).error());
  return sent;
}

Result<void> TcpStore::Receive(std::span<char> bytes, TimePoint deadline) {
  auto received = socket_.Receive(bytes, deadline);
  if (!received) return Break(std::move(received).error());
  return received;
}

// A one-byte reply: an enum whose last allowed value is `largest`.
template <typename Answer>
Result<Answer> TcpStore::ReceiveByte(Answer largest, TimePoint deadline) {
  uint8_t byte = 0;
  auto received = Receive(BytesOf(byte), deadline);
  if (!received) return std::move(received).error();
  if (byte > static_cast<uint8_t>(largest)) {
    return Break({ErrorCode::kProtocol, "the server answered with a byte " + std::to_string(byte) +
                                            ", which means nothing here"});
  }
  return static_cast<Answer>(byte);
}

// What is still under way on the connection would be taken for the reply to
// the next request, so there is none.
Error TcpStore::Break(Error error) {
  if (error.code == ErrorCode::kTimeout) {
    error.message = "no reply from the store at " + socket_.peer().ToString() + " within " +
                    FormatSeconds(reply_timeout_);
  }
  broken_ = error.message;
  return error;
}

TimePoint TcpStore::ReplyDeadline() const { return After(reply_timeout_); }

}  // namespace rankrun::store
