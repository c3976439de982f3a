#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/fd.h"

// Connections between the ranks of a communicator of the fake NCCL.
namespace rankrun::fake_nccl {

// Parts of one exchange with a peer, which may be this rank. They match in their
// order, by size.
struct Out {
  int peer;
  const char* data;
  size_t bytes;
};
struct In {
  int peer;
  char* data;
  size_t bytes;
};

// Thread: one, beside Abort.
class Mesh {
 public:
  Mesh(std::string name, int rank, int size);

  // Connects to all other ranks with the same name. Returns false after Abort.
  bool Connect();
  // Moves all parts. As NCCL, it waits for ever for a rank that has died or makes
  // no call. Returns false after Abort.
  bool Exchange(const std::vector<Out>& outs, const std::vector<In>& ins);
  // Ends Connect and Exchange for good. Thread: any.
  void Abort();
  void AwaitAbort();

 private:
  bool Accept(Fd& listener);
  bool Dial(int peer);
  // Waits for an event at one of the descriptors. Returns false after Abort.
  bool Poll(std::vector<pollfd>& waits);

  const std::string name_;
  const int rank_;
  const int size_;
  std::vector<Fd> peers_;
  Fd aborted_;  // eventfd
};

}  // namespace rankrun::fake_nccl
