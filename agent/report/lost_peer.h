#pragma once

#include "agent/report/last_error.h"

// Texts in which a program says that another one has ended or did not come. Letters count the same
// in both cases, because languages and libraries write the texts of the system as they like. Pure.
namespace rankrun::agent {

// Returns whether an error says that the connection to another process was lost, in a text
// of PyTorch, Gloo, NCCL, librankrun, the kernel, Python or its common libraries, Rust or Go.
bool BlamesLostPeer(const LastError& error);

// Returns whether the last line is the text of the system for a lost connection, with a prefix,
// as perror and log.Fatal of Go write it, or Rust's description of that error: "recv: Connection
// reset by peer"; or whether MPI aborts because another process has failed.
bool EndsWithLostPeer(const LastError& error);

// Returns whether a wait for other workers took too long, in a text of PyTorch, Gloo, NCCL,
// librankrun, or Python's own sockets, or in the last line of a program in Go.
bool TimedOut(const LastError& error);

// Returns whether the input of the program ended too early. It may be a connection whose other
// end has died, or a file that is cut off.
bool InputEnded(const LastError& error);

}  // namespace rankrun::agent
