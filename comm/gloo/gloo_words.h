#pragma once

#include <string>
#include <vector>

namespace rankrun::comm {

// "Connection closed by peer" for what Gloo says as
// "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:4711":
// the place in its source and the address are no help to a person.
std::string PlainWords(std::string text);

// "rank 1", "ranks 0-2, 5".
std::string NameRanks(const std::vector<int>& ranks);

}  // namespace rankrun::comm
