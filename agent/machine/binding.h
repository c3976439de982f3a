#pragma once

#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/machine/topology.h"
#include "base/result.h"

namespace rankrun::agent {

// Returns the CPUs of each of `workers`, by local rank. `gpu_nodes` has the
// NUMA node of each GPU: worker i gets cores near GPU i. With fewer GPUs than
// workers, the workers are spread over the machine in order, neighbours
// together. Hardware threads of a core stay together. `topology` contains only
// the allowed CPUs. `binding` is not kNone. Pure.
// Errors: kInvalid for fewer cores than workers if each needs its own, and for
// a GPU at a node without allowed cores.
// Source: torchrun's --numa-binding for nodes, sockets, exclusive,
// core-complex.
Result<std::vector<Cpus>> PlanBinding(const Topology& topology, Binding binding, int workers,
                                      const std::vector<int>& gpu_nodes);

// Returns the flag's name of a binding: "core".
std::string BindingName(Binding binding);

// Returns the number of cores of each worker of `plan`, at least 1. Cores with
// several users are divided among them. Pure.
std::vector<int> CoresEach(const Topology& topology, const std::vector<Cpus>& plan);

// Returns `plan` as a table of text: one line per worker with its CPUs, NUMA
// nodes, packages and its entry of `gpus` ("-" if it has none). Pure.
std::string BindingTable(const Topology& topology, const std::vector<Cpus>& plan,
                         const std::vector<std::string>& gpus);

}  // namespace rankrun::agent
