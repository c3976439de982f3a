#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include <rankrun/rpc.h>

// Calls and replies of RPC over UNIX sockets.
namespace own_agent {

// A call or a reply.
struct Message {
  uint64_t call = 0;        // its number; the reply has the same one
  std::string method = {};  // of a call
  rankrun::rpc::Payload payload = {};
};

// A connected socket. A message on it: four numbers, the method, the bytes, then for each
// attachment its size and bytes.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { close(socket_); }

  // Thread: any. Returns false if the line has ended.
  bool Send(const Message& message) {
    const rankrun::rpc::Payload& payload = message.payload;
    const Header header{message.call, message.method.size(), payload.bytes.size(),
                        payload.attachments.size()};
    std::lock_guard lock(mutex_);
    bool sent = Put(&header, sizeof header) && Put(message.method) && Put(payload.bytes);
    for (const rankrun::rpc::Attachment& each : payload.attachments) {
      const uint64_t size = each.bytes.size();
      sent = sent && Put(&size, sizeof size) && Put(each.bytes.data(), size);
    }
    return sent;
  }

  // Thread: one. Returns false if the line has ended.
  bool Receive(Message& message) {
    Header header{};
    if (!Take(&header, sizeof header)) return false;
    message.call = header.call;
    message.method.resize(header.method_bytes);
    message.payload.bytes.resize(header.bytes);
    bool taken = Take(message.method.data(), header.method_bytes) &&
                 Take(message.payload.bytes.data(), header.bytes);
    for (uint64_t i = 0; taken && i < header.attachments; ++i) {
      uint64_t size = 0;
      if (!Take(&size, sizeof size)) return false;
      constexpr std::align_val_t kAlignment{64};  // that the library promises to methods
      std::shared_ptr<void> memory(operator new(size, kAlignment),
                                   [](void* at) { operator delete(at, kAlignment); });
      taken = Take(memory.get(), size);
      message.payload.attachments.push_back(
          {memory, {static_cast<const std::byte*>(memory.get()), size}});
    }
    return taken;
  }

  void End() { shutdown(socket_, SHUT_RDWR); }

 private:
  struct Header {
    uint64_t call, method_bytes, bytes, attachments;
  };

  bool Put(const std::string& text) { return Put(text.data(), text.size()); }
  bool Put(const void* data, size_t size) {
    for (const char* at = static_cast<const char*>(data); size > 0;) {
      ssize_t sent = send(socket_, at, size, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      at += sent;
      size -= static_cast<size_t>(sent);
    }
    return true;
  }
  bool Take(void* data, size_t size) {
    for (char* at = static_cast<char*>(data); size > 0;) {
      ssize_t taken = recv(socket_, at, size, 0);
      if (taken < 0 && errno == EINTR) continue;
      if (taken <= 0) return false;
      at += taken;
      size -= static_cast<size_t>(taken);
    }
    return true;
  }

  const int socket_;
  std::mutex mutex_;  // of senders
};

}  // namespace own_agent
