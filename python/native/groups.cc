// Worlds, groups and their properties. A group is a capsule; None is the world of init().

#include "python/native/arguments.h"
#include "python/native/functions.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

constexpr const char* kContext = "rankrun.context";
constexpr const char* kSaving = "rankrun.saving";

PyObject* None() { return Ref::To(Py_None).Release(); }

// Not owned: the library keeps a group until it is destroyed.
PyObject* HandleOf(rankrun_group* group) {
  return PyCapsule_New(group, Arguments::kGroup, nullptr);
}

// Texts live as long as their arguments.
rankrun_init_options InitOptions(Arguments& in) {
  rankrun_init_options options;
  options.size = sizeof options;
  rankrun_init_options_default(&options);
  if (const char* backend = in.TextOrNone()) options.backend = backend;
  if (const char* method = in.TextOrNone()) options.init_method = method;
  options.rank = in.Int();
  options.world_size = in.Int();
  if (const int64_t timeout = in.Integer(); timeout >= 0) options.timeout_ms = timeout;
  options.store = in.Store();
  return options;
}

// init(backend, init_method, rank, world_size, timeout_ms, store): None, -1 and a negative time-out
// are the defaults.
PyObject* Init(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_init_options options = InitOptions(in);
  return Run(in, false, [&](rankrun_work**) { return rankrun_init(&options); });
}

// context_init(name, and the arguments of init): returns the context.
PyObject* ContextInit(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const char* name = in.Text();
  const rankrun_init_options options = InitOptions(in);
  if (!in.Complete()) return nullptr;
  rankrun_context* context = nullptr;
  if (Succeeds([&] { return rankrun_context_init(name, &options, &context); })) {
    return PyCapsule_New(context, kContext, nullptr);
  }
  if (context != nullptr) {  // an exception of a signal handler
    const WithoutLock others_run;
    rankrun_context_release(context);
  }
  return nullptr;
}

// context_release(context): destroys its groups. It is released no other way.
PyObject* ContextRelease(PyObject*, PyObject* capsule) {
  auto* context = static_cast<rankrun_context*>(PyCapsule_GetPointer(capsule, kContext));
  if (context == nullptr) return nullptr;
  if (PyCapsule_SetName(capsule, "rankrun.context, released") != 0) return nullptr;
  {
    const WithoutLock others_run;
    rankrun_context_release(context);
  }
  return None();
}

PyObject* ContextWorld(PyObject*, PyObject* capsule) {
  const auto* context = static_cast<rankrun_context*>(PyCapsule_GetPointer(capsule, kContext));
  rankrun_group* world = nullptr;
  if (context == nullptr) return nullptr;
  if (!Succeeds([&] { return rankrun_context_world(context, &world); })) return nullptr;
  return HandleOf(world);
}

PyObject* Initialized(PyObject*, PyObject*) { return PyBool_FromLong(rankrun_initialized()); }

PyObject* World(PyObject*, PyObject*) {
  rankrun_group* world = nullptr;
  if (!Succeeds([&] { return rankrun_world(&world); })) return nullptr;
  return HandleOf(world);
}

PyObject* Destroy(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  return Run(in, false, [&](rankrun_work**) { return rankrun_destroy(group); });
}

// abort(group, reason)
PyObject* Abort(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const char* reason = in.TextOrNone();
  return Run(in, false, [&](rankrun_work**) { return rankrun_abort(group, reason); });
}

// new_group(context, ranks, sort_ranks, use_local_synchronization, timeout_ms, backend,
// description): None as the context is that of init().
PyObject* NewGroup(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  auto* context = static_cast<rankrun_context*>(in.Pointer(kContext));
  const auto ranks = in.ListOf<int32_t>();
  rankrun_group_options options;
  options.size = sizeof options;
  rankrun_group_options_default(&options);
  options.ranks = ranks.empty() ? nullptr : ranks.data();
  options.ranks_count = ranks.size();
  options.sort_ranks = in.Flag() ? 1 : 0;
  options.use_local_synchronization = in.Flag() ? 1 : 0;
  options.timeout_ms = in.Integer();
  options.backend = in.TextOrNone();
  options.description = in.TextOrNone();
  if (!in.Complete()) return nullptr;
  rankrun_group* group = nullptr;
  auto make = [&] {
    return context != nullptr ? rankrun_context_new_group(context, &options, &group)
                              : rankrun_new_group(&options, &group);
  };
  return Succeeds(make) ? HandleOf(group) : nullptr;
}

rankrun_subgroup_options SubgroupOptions(Arguments& in) {
  rankrun_subgroup_options options;
  options.size = sizeof options;
  rankrun_subgroup_options_default(&options);
  options.timeout_ms = in.Integer();
  options.backend = in.TextOrNone();
  options.description = in.TextOrNone();
  return options;
}

// split_group(parent, ranks, sizes, timeout_ms, backend, description)
PyObject* SplitGroup(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* parent = in.Group();
  const auto ranks = in.ListOf<int32_t>();
  const auto sizes = in.ListOf<size_t>();
  const rankrun_subgroup_options options = SubgroupOptions(in);
  rankrun_group* group = nullptr;
  if (!in.Complete()) return nullptr;
  return Succeeds([&] {
    return rankrun_split_group(parent, ranks.data(), sizes.data(), sizes.size(), &options, &group);
  })
             ? HandleOf(group)
             : nullptr;
}

// shrink_group(parent, excluded, timeout_ms, backend, description)
PyObject* ShrinkGroup(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* parent = in.Group();
  const auto excluded = in.ListOf<int32_t>();
  const rankrun_subgroup_options options = SubgroupOptions(in);
  rankrun_group* group = nullptr;
  if (!in.Complete()) return nullptr;
  return Succeeds([&] {
    return rankrun_shrink_group(parent, excluded.data(), excluded.size(), &options, &group);
  })
             ? HandleOf(group)
             : nullptr;
}

template <int (*kNumber)(const rankrun_group*)>
PyObject* NumberOf(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_group* group = in.Group();
  return in.Complete() ? PyLong_FromLong(kNumber(group)) : nullptr;
}

template <const char* (*kText)(const rankrun_group*)>
PyObject* TextOf(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_group* group = in.Group();
  if (!in.Complete()) return nullptr;
  const char* text = kText(group);
  return text != nullptr ? PyUnicode_FromString(text) : None();
}

PyObject* GroupRanks(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_group* group = in.Group();
  const int* ranks = nullptr;
  size_t size = 0;
  if (!in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_group_ranks(group, &ranks, &size); })) return nullptr;
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < size; ++i) {
    const Ref rank(PyLong_FromLong(ranks[i]));
    if (!rank || PyList_Append(list.get(), rank.get()) != 0) return nullptr;
  }
  return list.Release();
}

// group_state(group): raises the error of a broken group.
PyObject* GroupState(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_group* group = in.Group();
  return Run(in, false, [&](rankrun_work**) { return rankrun_group_state(group); });
}

PyObject* BackendAvailable(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const char* name = in.Text();
  return in.Complete() ? PyBool_FromLong(rankrun_backend_available(name)) : nullptr;
}

PyObject* DefaultBackendForDevice(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const char* device = in.Text();
  const char* backend = nullptr;
  if (!in.Complete()) return nullptr;
  auto ask = [&] { return rankrun_default_backend_for_device(device, &backend); };
  return Succeeds(ask) ? PyUnicode_FromString(backend) : nullptr;
}

PyObject* LaunchedByAgent(PyObject*, PyObject*) {
  return PyBool_FromLong(rankrun_launched_by_agent());
}

PyObject* SavingBegin(PyObject*, PyObject*) {
  rankrun_saving* saving = rankrun_saving_begin();
  if (saving == nullptr) return Raise(RANKRUN_INTERNAL);
  return PyCapsule_New(saving, kSaving, nullptr);
}

PyObject* SavingEnd(PyObject*, PyObject* capsule) {
  auto* saving = static_cast<rankrun_saving*>(PyCapsule_GetPointer(capsule, kSaving));
  if (saving == nullptr) return nullptr;
  if (PyCapsule_SetName(capsule, "rankrun.saving, ended") != 0) return nullptr;
  rankrun_saving_end(saving);
  return None();
}

PyObject* NoteStep(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const int64_t step = in.Integer();
  return in.Complete() ? PyBool_FromLong(rankrun_note_step(step)) : nullptr;
}

}  // namespace

PyMethodDef group_functions[] = {
    {"init", Function<Init>(), METH_FASTCALL, nullptr},
    {"initialized", Initialized, METH_NOARGS, nullptr},
    {"world", World, METH_NOARGS, nullptr},
    {"destroy", Function<Destroy>(), METH_FASTCALL, nullptr},
    {"abort", Function<Abort>(), METH_FASTCALL, nullptr},
    {"context_init", Function<ContextInit>(), METH_FASTCALL, nullptr},
    {"context_release", ContextRelease, METH_O, nullptr},
    {"context_world", ContextWorld, METH_O, nullptr},
    {"new_group", Function<NewGroup>(), METH_FASTCALL, nullptr},
    {"split_group", Function<SplitGroup>(), METH_FASTCALL, nullptr},
    {"shrink_group", Function<ShrinkGroup>(), METH_FASTCALL, nullptr},
    {"group_rank", Function<NumberOf<rankrun_group_rank>>(), METH_FASTCALL, nullptr},
    {"world_size", Function<NumberOf<rankrun_world_size>>(), METH_FASTCALL, nullptr},
    {"global_rank", Function<NumberOf<rankrun_global_rank>>(), METH_FASTCALL, nullptr},
    {"is_member", Function<NumberOf<rankrun_is_member>>(), METH_FASTCALL, nullptr},
    {"group_ranks", Function<GroupRanks>(), METH_FASTCALL, nullptr},
    {"group_name", Function<TextOf<rankrun_group_name>>(), METH_FASTCALL, nullptr},
    {"group_description", Function<TextOf<rankrun_group_description>>(), METH_FASTCALL, nullptr},
    {"group_backend", Function<TextOf<rankrun_group_backend>>(), METH_FASTCALL, nullptr},
    {"group_state", Function<GroupState>(), METH_FASTCALL, nullptr},
    {"backend_available", Function<BackendAvailable>(), METH_FASTCALL, nullptr},
    {"default_backend_for_device", Function<DefaultBackendForDevice>(), METH_FASTCALL, nullptr},
    {"launched_by_agent", LaunchedByAgent, METH_NOARGS, nullptr},
    {"saving_begin", SavingBegin, METH_NOARGS, nullptr},
    {"saving_end", SavingEnd, METH_O, nullptr},
    {"note_step", Function<NoteStep>(), METH_FASTCALL, nullptr},
    {}};

}  // namespace rankrun::python
