// store_echo: a server on libuv with the least work that a store server can do,
// as the limit for ours. Each connection first sends two 32-bit integers of the
// host, the lengths of its requests and of their replies. The server sends
// these eight bytes back. From then on it answers every request with a reply of
// that length, whatever its contents. It has one read buffer and one write per
// read. Prints "127.0.0.1:PORT" and runs until SIGTERM.

#include <uv.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr uint32_t kMaxMessage = 64 * 1024 * 1024;

struct Connection {
  uv_tcp_t tcp;
  char sizes[8];          // lengths of request and reply, as received
  size_t sizes_come = 0;  // received bytes of `sizes`
  uint32_t request = 0;   // bytes
  uint32_t reply = 0;     // bytes
  size_t incomplete = 0;  // received bytes of the current request
};

char in_buffer[kBufferBytes];
const char* zeros;  // replies
size_t zeros_bytes;

void Check(int status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "store_echo: %s: %s\n", what, uv_strerror(status));
  std::exit(1);
}

void OnClosed(uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); }

void Close(Connection* connection) {
  auto* handle = reinterpret_cast<uv_handle_t*>(&connection->tcp);
  if (!uv_is_closing(handle)) uv_close(handle, OnClosed);
}

struct Write {
  uv_write_t request;
  char bytes[];
};

void OnWritten(uv_write_t* request, int) { std::free(request->data); }

// Bytes that the kernel does not accept at once are copied and queued.
void Send(Connection* connection, const char* bytes, size_t count) {
  auto* stream = reinterpret_cast<uv_stream_t*>(&connection->tcp);
  uv_buf_t buffer = uv_buf_init(const_cast<char*>(bytes), static_cast<unsigned>(count));
  int sent = uv_try_write(stream, &buffer, 1);
  if (sent == static_cast<int>(count)) return;
  if (sent < 0 && sent != UV_EAGAIN) return Close(connection);
  size_t begin = sent < 0 ? 0 : static_cast<size_t>(sent);
  auto* write = static_cast<Write*>(std::malloc(sizeof(Write) + count - begin));
  if (write == nullptr) std::abort();
  std::memcpy(write->bytes, bytes + begin, count - begin);
  write->request.data = write;
  buffer = uv_buf_init(write->bytes, static_cast<unsigned>(count - begin));
  if (uv_write(&write->request, stream, &buffer, 1, OnWritten) != 0) std::free(write);
}

// Consumes the sizes from the front of the received bytes. Returns the number
// of bytes consumed.
size_t ReadSizes(Connection* connection, size_t count) {
  size_t taken = std::min(count, sizeof connection->sizes - connection->sizes_come);
  std::memcpy(connection->sizes + connection->sizes_come, in_buffer, taken);
  connection->sizes_come += taken;
  if (connection->sizes_come < sizeof connection->sizes) return taken;
  std::memcpy(&connection->request, connection->sizes, 4);
  std::memcpy(&connection->reply, connection->sizes + 4, 4);
  if (connection->request == 0 || connection->request > kMaxMessage ||
      connection->reply > kMaxMessage) {
    std::fprintf(stderr, "store_echo: closed a connection that wants replies of %u bytes to %u\n",
                 connection->reply, connection->request);
    Close(connection);
    return count;
  }
  Send(connection, connection->sizes, sizeof connection->sizes);
  return taken;
}

void OnRead(uv_stream_t* stream, ssize_t read, const uv_buf_t*) {
  auto* connection = static_cast<Connection*>(stream->data);
  if (read < 0) return Close(connection);
  size_t count = static_cast<size_t>(read);
  if (connection->sizes_come < sizeof connection->sizes) {
    count -= ReadSizes(connection, count);
    if (count == 0) return;
  }
  count += connection->incomplete;
  connection->incomplete = count % connection->request;
  size_t reply = count / connection->request * connection->reply;
  while (reply > 0 && !uv_is_closing(reinterpret_cast<uv_handle_t*>(stream))) {
    size_t piece = std::min(reply, zeros_bytes);
    Send(connection, zeros, piece);
    reply -= piece;
  }
}

void OnAllocate(uv_handle_t*, size_t, uv_buf_t* buffer) {
  *buffer = uv_buf_init(in_buffer, sizeof in_buffer);
}

void OnConnection(uv_stream_t* listener, int status) {
  if (status < 0) return;  // no descriptor left; libuv closes the connection
  auto* connection = new Connection{};
  uv_tcp_init(listener->loop, &connection->tcp);
  connection->tcp.data = connection;
  auto* stream = reinterpret_cast<uv_stream_t*>(&connection->tcp);
  if (uv_accept(listener, stream) != 0) return Close(connection);
  uv_tcp_nodelay(&connection->tcp, 1);
  uv_read_start(stream, OnAllocate, OnRead);
}

}  // namespace

int main() {
  static char replies[1024 * 1024];
  zeros = replies;
  zeros_bytes = sizeof replies;
  uv_loop_t* loop = uv_default_loop();
  uv_tcp_t listener;
  Check(uv_tcp_init(loop, &listener), "make a socket");
  sockaddr_in address{};
  uv_ip4_addr("127.0.0.1", 0, &address);
  Check(uv_tcp_bind(&listener, reinterpret_cast<sockaddr*>(&address), 0), "bind 127.0.0.1");
  Check(uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 65535, OnConnection), "listen");
  int size = sizeof address;
  Check(uv_tcp_getsockname(&listener, reinterpret_cast<sockaddr*>(&address), &size), "get a port");
  std::printf("127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return uv_run(loop, UV_RUN_DEFAULT);
}
