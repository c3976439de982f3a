#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"

// Sockets of connections between ranks, and the errors of opening them.
namespace rankrun::comm::tcp {

// Descriptors that the connections of one rank need, for texts.
struct DescriptorNeed {
  size_t ranks;
  size_t descriptors;
};

DescriptorNeed NeedOf(size_t ranks, size_t data_streams);

// Returns whether `error_number` means that no socket can be opened now.
bool IsExhaustion(int error_number);

// Returns "<what>: Too many open files; 8 ranks need 22 descriptors ..." with
// kExhausted, or SystemError for an error that is no exhaustion.
Error SocketError(std::string_view what, int error_number, const DescriptorNeed& need);

// Sets the options that all connected sockets have. Best effort.
void SetStreamOptions(int socket_fd);

// Starts to connect a non-blocking socket, which becomes writable when it is
// connected or has failed (SO_ERROR). Returns none on failure, with errno.
Fd StartConnecting(const SocketAddress& address);

// Returns `address`, which a peer has published, with the scope of the own
// address `own` if it is link-local: scopes differ between hosts.
SocketAddress InScopeOf(const SocketAddress& own, SocketAddress address);

// Returns the error of a socket as a number of errno, and clears it.
int TakeSocketError(int socket_fd);

std::string ErrorText(int error_number);

// Returns whether a socket is connected to itself, as happens when it connects
// to a free port from which the kernel also chooses the local one.
bool IsConnectedToItself(int socket_fd);

}  // namespace rankrun::comm::tcp
