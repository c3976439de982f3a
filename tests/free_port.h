#pragma once

namespace rankrun::test {

// Returns a free port outside of the range of ephemeral ports, which no other test
// on this machine gets while this process lives.
int FreePort();

}  // namespace rankrun::test
