#pragma once

#include <rankrun/rpc.h>

#include "comm/cpp/rpc/running.h"

// Attachments between GPUs, through the memory of the hosts.
namespace rankrun::rpc {

// Way of a payload from this worker.
struct Route {
  WorkerInfo receiver;
  bool is_reply = false;
};

// Returns the number of this process's GPUs; 0 if there is no way to use one.
int GpuCount();

// Copies attachments on GPUs to the host, and appends the devices of arrival to the bytes.
// Throws DistError for a GPU that no device map names.
void SendDevices(Running& running, Payload& payload, const Route& route);
// Copies attachments to the devices behind the bytes. Throws DistError if that fails, or for a
// device that this worker does not use.
void ReceiveDevices(const Running& running, Payload& payload, int sender);

}  // namespace rankrun::rpc
