// The collectives. Each takes the group, its own arguments, the time-out in milliseconds, and
// whether it is asynchronous.

#include "python/native/arguments.h"
#include "python/native/functions.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

PyObject* AllReduce(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const rankrun_reduce_op op = in.Operation();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_all_reduce(group, &tensor, &op, timeout, work);
  });
}

PyObject* Reduce(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int root = in.Int();
  const rankrun_reduce_op op = in.Operation();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_reduce(group, &tensor, root, &op, timeout, work);
  });
}

PyObject* Broadcast(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_broadcast(group, &tensor, root, timeout, work);
  });
}

PyObject* AllGather(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto outputs = in.Tensors();
  const rankrun_tensor input = in.Tensor();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_all_gather(group, outputs.data(), outputs.size(), &input, timeout, work);
  });
}

PyObject* AllGatherInto(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor output = in.Tensor(), input = in.Tensor();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_all_gather_into(group, &output, &input, timeout, work);
  });
}

PyObject* Gather(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto outputs = in.Tensors();
  const rankrun_tensor input = in.Tensor();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_gather(group, outputs.data(), outputs.size(), &input, root, timeout, work);
  });
}

PyObject* Scatter(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor output = in.Tensor();
  const auto inputs = in.Tensors();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_scatter(group, &output, inputs.data(), inputs.size(), root, timeout, work);
  });
}

PyObject* ReduceScatter(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor output = in.Tensor();
  const auto inputs = in.Tensors();
  const rankrun_reduce_op op = in.Operation();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_reduce_scatter(group, &output, inputs.data(), inputs.size(), &op, timeout, work);
  });
}

PyObject* ReduceScatterFrom(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor output = in.Tensor(), input = in.Tensor();
  const rankrun_reduce_op op = in.Operation();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_reduce_scatter_from(group, &output, &input, &op, timeout, work);
  });
}

PyObject* AllToAll(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto outputs = in.Tensors(), inputs = in.Tensors();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_all_to_all(group, outputs.data(), outputs.size(), inputs.data(), inputs.size(),
                              timeout, work);
  });
}

// The splits are lists of rows by rank, or None.
PyObject* AllToAllSingle(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor output = in.Tensor(), input = in.Tensor();
  const auto received = in.ListOf<size_t>(), sent = in.ListOf<size_t>();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(), [&](rankrun_work** work) {
    return rankrun_all_to_all_single(group, &output, &input, received.data(), received.size(),
                                     sent.data(), sent.size(), timeout, work);
  });
}

PyObject* Barrier(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const int64_t timeout = in.Integer();
  return Run(in, in.Flag(),
             [&](rankrun_work** work) { return rankrun_barrier(group, timeout, work); });
}

// monitored_barrier(group, timeout_ms, wait_all_ranks)
PyObject* MonitoredBarrier(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const int64_t timeout = in.Integer();
  const bool waits_for_all = in.Flag();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_monitored_barrier(group, waits_for_all ? 1 : 0, timeout);
  });
}

}  // namespace

PyMethodDef collective_functions[] = {
    {"all_reduce", Function<AllReduce>(), METH_FASTCALL, nullptr},
    {"reduce", Function<Reduce>(), METH_FASTCALL, nullptr},
    {"broadcast", Function<Broadcast>(), METH_FASTCALL, nullptr},
    {"all_gather", Function<AllGather>(), METH_FASTCALL, nullptr},
    {"all_gather_into", Function<AllGatherInto>(), METH_FASTCALL, nullptr},
    {"gather", Function<Gather>(), METH_FASTCALL, nullptr},
    {"scatter", Function<Scatter>(), METH_FASTCALL, nullptr},
    {"reduce_scatter", Function<ReduceScatter>(), METH_FASTCALL, nullptr},
    {"reduce_scatter_from", Function<ReduceScatterFrom>(), METH_FASTCALL, nullptr},
    {"all_to_all", Function<AllToAll>(), METH_FASTCALL, nullptr},
    {"all_to_all_single", Function<AllToAllSingle>(), METH_FASTCALL, nullptr},
    {"barrier", Function<Barrier>(), METH_FASTCALL, nullptr},
    {"monitored_barrier", Function<MonitoredBarrier>(), METH_FASTCALL, nullptr},
    {}};

}  // namespace rankrun::python
