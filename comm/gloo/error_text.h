#pragma once

#include <string>

namespace rankrun::comm::gloo {

// Returns a text of Gloo without source position and address, which do not help
// a user: "Connection closed by peer" for "[./gloo/transport/tcp/pair.cc:598]
// Connection closed by peer [::1]:4711".
std::string PlainText(std::string text);

}  // namespace rankrun::comm::gloo
