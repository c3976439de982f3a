#pragma once

#include <rankrun/c/types.h>

// C form of distributed.h, subgroups.h, context.h and the properties of process_group.h.

#ifdef __cplusplus
extern "C" {
#endif

// Option structs may get new fields at the end. `size` is sizeof the struct in
// the program's version of this header, and is set first:
//   rankrun_init_options options;
//   options.size = sizeof options;
//   rankrun_init_options_default(&options);

// How a group uses NCCL; equal on all ranks.
typedef struct rankrun_nccl_options {
  uint32_t size;
  int32_t high_priority_stream;  // 0; 1: its kernels start before those of other streams
  int32_t min_ctas;              // 0: NCCL's choice
  int32_t max_ctas;              // 0: NCCL's choice
} rankrun_nccl_options;
RANKRUN_API rankrun_status rankrun_nccl_options_default(rankrun_nccl_options* options);

typedef struct rankrun_init_options {
  uint32_t size;
  int32_t rank;             // below 0: from init_method, otherwise from RANK
  int32_t world_size;       // below 0: from init_method, otherwise from WORLD_SIZE
  uint32_t reserved;        // 0
  int64_t timeout_ms;       // at least 1
  const char* backend;      // "auto"
  const char* init_method;  // "env://"
  // Replaces init_method and requires rank and world_size. The caller may
  // release it after rankrun_init.
  rankrun_store* store;
  int32_t device_index;              // of this rank's GPU, to connect at once; -1: none
  uint32_t reserved_2;               // 0
  const rankrun_nccl_options* nccl;  // NULL: defaults
} rankrun_init_options;
RANKRUN_API rankrun_status rankrun_init_options_default(rankrun_init_options* options);

// Joins the world process group. NULL means default options.
RANKRUN_API rankrun_status rankrun_init(const rankrun_init_options* options);
RANKRUN_API int rankrun_initialized(void);
// Destroys one group, of any context; a world, or NULL for that of rankrun_init,
// destroys all its groups. Later calls with their handles are RANKRUN_INVALID.
RANKRUN_API rankrun_status rankrun_destroy(rankrun_group* group);
// Abort of diagnosis/abort.h. `group` NULL: the world of rankrun_init; `reason` NULL: none.
RANKRUN_API rankrun_status rankrun_abort(rankrun_group* group, const char* reason);
RANKRUN_API rankrun_status rankrun_world(rankrun_group** world);

typedef struct rankrun_group_options {
  uint32_t size;                      // as in rankrun_init_options
  int32_t sort_ranks;                 // 1; 0: group ranks follow the order of `ranks`
  int32_t use_local_synchronization;  // 0; 1: only members call
  uint32_t reserved;                  // 0
  const int32_t* ranks;               // global ranks of the members; NULL: all
  size_t ranks_count;
  int64_t timeout_ms;                // RANKRUN_DEFAULT_TIMEOUT: the world's
  const char* backend;               // NULL: as the world's was asked for
  const char* description;           // NULL: none
  const rankrun_nccl_options* nccl;  // NULL: as the world's
} rankrun_group_options;
RANKRUN_API rankrun_status rankrun_group_options_default(rankrun_group_options* options);

// Makes a group. All ranks of the world call it in the same order with the same
// options.
RANKRUN_API rankrun_status rankrun_new_group(const rankrun_group_options* options,
                                             rankrun_group** group);

typedef struct rankrun_subgroup_options {
  uint32_t size;                     // as in rankrun_init_options
  uint32_t reserved;                 // 0
  int64_t timeout_ms;                // RANKRUN_DEFAULT_TIMEOUT: the parent's
  const char* backend;               // NULL: as the world's was asked for
  const char* description;           // NULL: none
  const rankrun_nccl_options* nccl;  // NULL: as the world's
} rankrun_subgroup_options;
RANKRUN_API rankrun_status rankrun_subgroup_options_default(rankrun_subgroup_options* options);

// Makes several groups at once (subgroups.h). `ranks` has the members of the first
// group, then those of the second: group i has sizes[i] of them. Here and below, a
// NULL list is an error of this rank alone, which may repeat the call.
RANKRUN_API rankrun_status rankrun_split_group(rankrun_group* parent, const int32_t* ranks,
                                               const size_t* sizes, size_t count,
                                               const rankrun_subgroup_options* options,
                                               rankrun_group** group);
// Makes a group without `excluded`, which are group ranks of the parent.
RANKRUN_API rankrun_status rankrun_shrink_group(rankrun_group* parent, const int32_t* excluded,
                                                size_t count,
                                                const rankrun_subgroup_options* options,
                                                rankrun_group** group);

// A world beside that of rankrun_init, owned by the caller until
// rankrun_context_release.
typedef struct rankrun_context rankrun_context;
RANKRUN_API rankrun_status rankrun_context_init(const char* name,
                                                const rankrun_init_options* options,
                                                rankrun_context** context);
RANKRUN_API rankrun_status rankrun_context_world(const rankrun_context* context,
                                                 rankrun_group** world);
RANKRUN_API rankrun_status rankrun_context_new_group(rankrun_context* context,
                                                     const rankrun_group_options* options,
                                                     rankrun_group** group);
// Destroys its groups. Ignores NULL.
RANKRUN_API void rankrun_context_release(rankrun_context* context);

// These return -1, and rankrun_is_member 0, if this rank is not a member, the
// group is destroyed, or there is no world.
RANKRUN_API int rankrun_group_rank(const rankrun_group* group);
RANKRUN_API int rankrun_world_size(const rankrun_group* group);  // number of members
RANKRUN_API int rankrun_global_rank(const rankrun_group* group);
RANKRUN_API int rankrun_is_member(const rankrun_group* group);
// Gives the global ranks of the members, by group rank. Valid as long as the
// group exists.
RANKRUN_API rankrun_status rankrun_group_ranks(const rankrun_group* group, const int** ranks,
                                               size_t* count);
RANKRUN_API rankrun_status rankrun_to_group_rank(const rankrun_group* group, int global_rank,
                                                 int* group_rank);
RANKRUN_API rankrun_status rankrun_to_global_rank(const rankrun_group* group, int group_rank,
                                                  int* global_rank);

// Texts are valid as long as the group exists; NULL if it is destroyed or there is
// no world, and for the backend also if this rank is not a member.
RANKRUN_API const char* rankrun_group_name(const rankrun_group* group);
RANKRUN_API const char* rankrun_group_description(const rankrun_group* group);
RANKRUN_API const char* rankrun_group_backend(const rankrun_group* group);  // "shm", "tcp"
// Returns RANKRUN_OK, or RANKRUN_BACKEND if the group is broken;
// rankrun_last_error() then describes the failed operation and its cause.
RANKRUN_API rankrun_status rankrun_group_state(const rankrun_group* group);

RANKRUN_API int rankrun_backend_available(const char* name);
// Gives the backend for "cpu", "cuda" or "cuda:1"; the text stays valid.
RANKRUN_API rankrun_status rankrun_default_backend_for_device(const char* device,
                                                              const char** backend);
RANKRUN_API int rankrun_launched_by_agent(void);

// Begin and end of a save that must not be interrupted: SavingNotice of
// distributed.h.
typedef struct rankrun_saving rankrun_saving;
RANKRUN_API rankrun_saving* rankrun_saving_begin(void);
RANKRUN_API void rankrun_saving_end(rankrun_saving* saving);

// Reports a finished step: NoteStep of step_notice.h. Returns whether rankrun can read it.
RANKRUN_API int rankrun_note_step(int64_t step);

#ifdef __cplusplus
}
#endif
