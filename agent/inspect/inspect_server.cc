#include "agent/inspect/inspect_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/net/peer_user.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr std::chrono::seconds kCheckInterval{1};

TimePoint Now() { return std::chrono::steady_clock::now(); }

bool IsAdmitted(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         IsOwnUserOrRoot(peer.uid);
}

}  // namespace

struct InspectServer::Client {
  ClientId id;
  Fd connection;
  Fd write_end;  // a duplicate, because libuv watches a descriptor for one purpose only
  std::unique_ptr<Poll> readable;
  std::unique_ptr<Poll> writable;
  std::string input;         // an incomplete request
  std::string output;        // not sent yet
  size_t sent = 0;           // bytes of `output` that are sent
  size_t open_requests = 0;  // not answered yet
  TimePoint last_progress = Now();
  bool is_half_closed = false;  // it sends no more, and still reads
  bool has_ended = false;
};

InspectServer::InspectServer(Loop& loop, InspectSocket socket, OnRequest on_request,
                             InspectLimits limits)
    : loop_(loop),
      socket_(std::move(socket)),
      on_request_(std::move(on_request)),
      limits_(limits),
      check_(loop, [this] { DropSlowClients(); }),
      sweep_(loop, [this] { Sweep(); }),
      retry_(loop, [this] { accept_->Start(); }) {}

InspectServer::~InspectServer() { unlink(socket_.path.c_str()); }

Result<void> InspectServer::Start() {
  auto poll = Poll::Open(loop_, socket_.fd.get(), [this] { OnConnection(); });
  if (!poll) return std::move(poll).error();
  accept_ = std::move(*poll);
  accept_->Start();
  return {};
}

void InspectServer::OnConnection() {
  Fd connection(accept4(socket_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) return Admit(std::move(connection));
  bool is_gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  if (is_gone) return;
  accept_->Stop();  // it would be called again at once
  retry_.Start(kCheckInterval);
}

void InspectServer::Admit(Fd connection) {
  std::string refusal;
  if (!IsAdmitted(connection.get())) refusal = "this job belongs to another user";
  if (clients_.size() >= limits_.clients) refusal = "the agent has too many clients already";
  if (!refusal.empty()) {
    std::string line = R"({"error":")" + refusal + "\"}\n";
    send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  auto client = std::make_unique<Client>();
  client->id = next_id_++;
  client->connection = std::move(connection);
  Client* raw = client.get();
  auto poll = Poll::Open(loop_, raw->connection.get(), [this, raw] { OnReadable(*raw); });
  if (!poll) return LogDebug(poll.error().message);
  raw->readable = std::move(*poll);
  raw->readable->Start();
  clients_.emplace(raw->id, std::move(client));
  check_.Start(kCheckInterval);
}

void InspectServer::OnReadable(Client& client) {
  std::array<char, kReadBytes> buffer;
  ssize_t count = read(client.connection.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) return End(client);
  if (count == 0) {
    client.readable->Stop();
    client.is_half_closed = true;
    return EndIfDone(client);
  }
  client.input.append(buffer.data(), static_cast<size_t>(count));
  TakeLines(client);
  if (client.input.size() < limits_.request_bytes || client.has_ended) return;
  Send(client.id, R"({"error":"wrong request: longer than )" +
                      std::to_string(limits_.request_bytes) + R"( bytes"})");
  End(client);
}

void InspectServer::TakeLines(Client& client) {
  size_t end = 0;
  while (!client.has_ended && (end = client.input.find('\n')) < limits_.request_bytes) {
    std::string line = client.input.substr(0, end);
    client.input.erase(0, end + 1);
    client.last_progress = Now();
    client.open_requests += 1;
    on_request_(client.id, std::move(line));
  }
}

void InspectServer::Send(ClientId id, std::string_view line) {
  auto found = clients_.find(id);
  if (found == clients_.end() || found->second->has_ended) return;
  Client& client = *found->second;
  if (client.output.size() - client.sent + line.size() > limits_.queued_bytes) {
    return End(client);
  }
  if (client.output.empty()) client.last_progress = Now();
  client.output.append(line).push_back('\n');
  Flush(client);
}

void InspectServer::SendLast(ClientId id, std::string_view line) {
  Send(id, line);
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  if (found->second->open_requests > 0) found->second->open_requests -= 1;
  EndIfDone(*found->second);
}

size_t InspectServer::buffered_bytes() const {
  size_t bytes = 0;
  for (const auto& [id, client] : clients_) bytes += client->output.size();
  return bytes;
}

// Ends a client that sends no more and has all its answers.
void InspectServer::EndIfDone(Client& client) {
  bool is_done = client.open_requests == 0 && client.output.empty();
  if (client.is_half_closed && is_done) End(client);
}

void InspectServer::Flush(Client& client) {
  while (client.sent < client.output.size() && !client.has_ended) {
    ssize_t count = send(client.connection.get(), client.output.data() + client.sent,
                         client.output.size() - client.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return End(client);
    client.sent += static_cast<size_t>(count);
    client.last_progress = Now();
  }
  if (client.sent == client.output.size()) {
    client.output.clear();
    client.sent = 0;
    if (client.writable) client.writable->Stop();
    return EndIfDone(client);
  }
  // A client that is always a little behind must not make it grow. Moves each byte at most once.
  if (client.sent > client.output.size() / 2) {
    client.output.erase(0, client.sent);
    client.sent = 0;
  }
  if (!client.writable) {
    client.write_end.Reset(fcntl(client.connection.get(), F_DUPFD_CLOEXEC, 0));
    if (!client.write_end) return End(client);
    auto poll = Poll::Open(
        loop_, client.write_end.get(), [this, raw = &client] { Flush(*raw); },
        Poll::Event::kWritable);
    if (!poll) return End(client);
    client.writable = std::move(*poll);
  }
  client.writable->Start();
}

void InspectServer::End(Client& client) {
  if (std::exchange(client.has_ended, true)) return;
  client.readable->Stop();
  if (client.writable) client.writable->Stop();
  sweep_.Start(std::chrono::milliseconds(0));
}

void InspectServer::DropSlowClients() {
  TimePoint now = Now();
  for (auto& [id, client] : clients_) {
    auto limit = client->output.empty() ? limits_.silence : limits_.stall;
    if (now - client->last_progress >= limit) End(*client);
  }
  if (!clients_.empty()) check_.Start(kCheckInterval);
}

void InspectServer::Sweep() {
  std::erase_if(clients_, [](const auto& entry) { return entry.second->has_ended; });
}

}  // namespace rankrun::agent
