#pragma once

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "comm/stream/connection.h"
#include "comm/stream/frame.h"

namespace rankrun::comm::stream {

// Two connected sockets, as between two ranks.
struct SocketPair {
  SocketPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    one = Fd(ends[0]);
    other = Fd(ends[1]);
  }
  Fd one;
  Fd other;
};

// Returns the bytes of a frame with that data.
inline std::string FrameBytes(FrameHeader header, std::string_view data = {}) {
  header.bytes = data.size();
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes.append(data);
}

// Writes bytes that fit into the socket's buffer.
inline void WriteAll(const Fd& socket, std::string_view bytes) {
  EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Returns everything that has arrived.
inline std::string ReadAll(const Fd& socket) {
  std::string all;
  char part[65536];
  for (ssize_t got; (got = recv(socket.get(), part, sizeof part, MSG_DONTWAIT)) > 0;) {
    all.append(part, static_cast<size_t>(got));
  }
  return all;
}

// Returns the number of bytes that have arrived and are not read.
inline int Unread(int socket) {
  int bytes = -1;
  EXPECT_EQ(ioctl(socket, FIONREAD, &bytes), 0);
  return bytes;
}

// Returns text of that size without a period that hides a shift.
inline std::string Text(size_t bytes, size_t seed = 1) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>((i + seed) * 2654435761U >> 13);
  }
  return text;
}

}  // namespace rankrun::comm::stream
