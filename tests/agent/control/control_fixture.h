#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/control/control_link.h"
#include "agent/control/control_server.h"
#include "base/write_all.h"
#include "tests/base/uv/loopback.h"
#include "tests/store/server/log_lines.h"

namespace rankrun::agent {

// Control server that records its callbacks.
class NotingServer {
 public:
  explicit NotingServer(Loop& loop, ControlServerOptions options = {.job_id = "job", .secret = ""})
      : server_(loop, std::move(options),
                {.on_hello =
                     [this](PeerId id, std::string hello, const SocketAddress& peer,
                            const SocketAddress& local) {
                       hellos.emplace_back(id, std::move(hello));
                       peers.push_back(peer.ToString());
                       locals.push_back(local.ToString());
                     },
                 .on_message =
                     [this](PeerId id, std::string payload) {
                       if (echoes) server_.Send(id, payload);
                       messages.push_back(std::move(payload));
                       if (then) then(id);
                     },
                 .on_lost = [this](PeerId id,
                                   const Error& why) { lost.emplace_back(id, why.message); }}) {}

  // Listens on 127.0.0.1.
  bool Listen(uint16_t port = 0) {
    auto listening = server_.Listen({{test::Loopback(port)}});
    return bool(listening);
  }
  Endpoint endpoint() const { return {"127.0.0.1", server_.port()}; }
  SocketAddress address() const { return test::Loopback(server_.port()); }
  ControlServer& operator*() { return server_; }
  ControlServer* operator->() { return &server_; }

  bool echoes = false;
  std::function<void(PeerId)> then;  // after each message
  std::vector<std::pair<PeerId, std::string>> hellos;
  std::vector<std::string> peers, locals, messages;
  std::vector<std::pair<PeerId, std::string>> lost;

 private:
  ControlServer server_;
};

// Control link that records its callbacks.
class NotingLink {
 public:
  NotingLink(Loop& loop, LinkOptions options)
      : link_(loop, Complete(std::move(options)), Notes()) {}
  NotingLink(Loop& loop, std::vector<Endpoint> endpoints, const std::string& secret = "")
      : NotingLink(loop, LinkOptions{.endpoints = std::move(endpoints),
                                     .job_id = "job",
                                     .secret = secret,
                                     .make_hello = {}}) {}

  ControlLink& operator*() { return link_; }
  ControlLink* operator->() { return &link_; }

  std::function<void()> after_message, after_down;
  int ups = 0;
  int hellos = 0;
  std::vector<std::string> messages, downs;
  std::vector<DialFailure> failures;

 private:
  LinkOptions Complete(LinkOptions options) {
    options.make_hello = [this] { return "hello " + std::to_string(++hellos); };
    return options;
  }
  ControlLink::Callbacks Notes() {
    return {.on_up = [this] { ups += 1; },
            .on_message =
                [this](std::string payload) {
                  messages.push_back(std::move(payload));
                  if (after_message) after_message();
                },
            .on_down =
                [this](const Error& why) {
                  downs.push_back(why.message);
                  if (after_down) after_down();
                },
            .on_failed = [this](const DialFailure& failure) { failures.push_back(failure); }};
  }

  ControlLink link_;
};

struct ControlTest : testing::Test {
  ControlTest() { signal(SIGPIPE, SIG_IGN); }

  bool Eventually(const std::function<bool()>& condition) {
    return loop.RunUntil(condition, test::kLong);
  }
  // Returns the next frame that the server sends to `client`.
  std::string ReadFrame(const Fd& client, FrameReader& reader) {
    std::string payload;
    EXPECT_TRUE(Eventually([&] {
      char byte;
      while (payload.empty() && recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1) {
        std::string_view bytes(&byte, 1);
        auto frame = reader.Next(bytes);
        if (frame && *frame) payload = **frame;
      }
      return !payload.empty();
    }));
    return payload;
  }
  // Does the handshake as a client. Returns the cipher for the frames that follow.
  std::unique_ptr<SessionCipher> Greet(const Fd& client, const JobSecret& secret,
                                       const std::string& hello = "hi") {
    ClientHandshake handshake(secret, "job");
    FrameReader reader;
    WriteAll(client.get(), ClientHandshake::FirstBytes());
    EXPECT_FALSE(handshake.TakeChallenge(ReadFrame(client, reader)));
    WriteAll(client.get(), EncodeFrame(handshake.Hello(hello)));
    EXPECT_FALSE(handshake.TakeAnswer(ReadFrame(client, reader)));
    return handshake.TakeCipher();
  }
  bool HasLogged(std::string_view text) {
    for (const std::string& line : log.Get()) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

  store::LogLines log;
  Loop loop;
};

}  // namespace rankrun::agent
