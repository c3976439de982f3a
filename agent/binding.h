#pragma once

#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "agent/topology.h"
#include "base/result.h"

namespace rankrun::agent {

// On which CPUs each of `workers` runs, by local rank. `gpu_nodes` has the NUMA
// node of each GPU: worker i gets what is near GPU i; if there are fewer GPUs
// than workers, workers are spread over the machine in order, neighbours
// together. Hardware threads of a core stay together. `topology` has what we
// may use only. `binding` is not kNone. Pure.
// Errors: kInvalid: fewer cores than workers, where each gets cores of its own;
// a GPU at a node of which we may use no core.
// Source: torchrun's --numa-binding for nodes, sockets, exclusive, core-complex.
Result<std::vector<Cpus>> PlanBinding(const Topology& topology, Binding binding, int workers,
                                      const std::vector<int>& gpu_nodes);

// As the flag has it: "core".
std::string BindingName(Binding binding);

// How many of the cores each worker of `plan` has, shared ones divided among
// those who share them; at least 1. Pure.
std::vector<int> CoresEach(const Topology& topology, const std::vector<Cpus>& plan);

// `plan` as a table for a person: a line per worker with its CPUs, NUMA nodes,
// packages and its entry of `gpus`, "-" beyond their end. Pure.
std::string BindingTable(const Topology& topology, const std::vector<Cpus>& plan,
                         const std::vector<std::string>& gpus);

}  // namespace rankrun::agent
