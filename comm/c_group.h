#pragma once

#include <rankrun/c_types.h>

// Init, process groups and their ranks: distributed.h and process_group.h in C.

#ifdef __cplusplus
extern "C" {
#endif

// Options grow at their ends. `size` is sizeof the struct as the program knows
// it, to be set before anything else:
//   rankrun_init_options options;
//   options.size = sizeof options;
//   rankrun_init_options_default(&options);
typedef struct rankrun_init_options {
  uint32_t size;
  int32_t rank;             // below 0: from init_method, else from RANK, WORLD_SIZE
  int32_t world_size;       // the same
  uint32_t reserved;        // 0
  int64_t timeout_ms;       // at least 1
  const char* backend;      // "auto"
  const char* init_method;  // "env://"
  // Instead of init_method; rank and world_size are needed then. May be released
  // afterwards.
  rankrun_store* store;
} rankrun_init_options;
RANKRUN_API rankrun_status rankrun_init_options_default(rankrun_init_options* options);

// Joins the other ranks in the world. NULL: the defaults.
RANKRUN_API rankrun_status rankrun_init(const rankrun_init_options* options);
RANKRUN_API int rankrun_initialized(void);
// Ends one group; of NULL or the world, all of them. Handles of ended groups dangle.
RANKRUN_API rankrun_status rankrun_destroy(rankrun_group* group);
RANKRUN_API rankrun_status rankrun_world(rankrun_group** world);

typedef struct rankrun_group_options {
  uint32_t size;                      // as in rankrun_init_options
  int32_t sort_ranks;                 // 1; 0: group ranks are in the order given
  int32_t use_local_synchronization;  // 0; 1: only members call
  uint32_t reserved;                  // 0
  const int32_t* ranks;               // global ranks of the members; NULL: all
  size_t ranks_count;
  int64_t timeout_ms;       // RANKRUN_DEFAULT_TIMEOUT: the world's
  const char* backend;      // NULL: as the world's was asked for
  const char* description;  // NULL: none
} rankrun_group_options;
RANKRUN_API rankrun_status rankrun_group_options_default(rankrun_group_options* options);

// All ranks of the world call it, in the same order with the same options.
RANKRUN_API rankrun_status rankrun_new_group(const rankrun_group_options* options,
                                             rankrun_group** group);

// -1: no member, or there is no world. So it is with the next two.
RANKRUN_API int rankrun_group_rank(const rankrun_group* group);
RANKRUN_API int rankrun_world_size(const rankrun_group* group);  // number of members
RANKRUN_API int rankrun_global_rank(const rankrun_group* group);
RANKRUN_API int rankrun_is_member(const rankrun_group* group);
// Global ranks of the members, by group rank; as long as the group lives.
RANKRUN_API rankrun_status rankrun_group_ranks(const rankrun_group* group, const int** ranks,
                                               size_t* count);
RANKRUN_API rankrun_status rankrun_to_group_rank(const rankrun_group* group, int global_rank,
                                                 int* group_rank);
RANKRUN_API rankrun_status rankrun_to_global_rank(const rankrun_group* group, int group_rank,
                                                  int* global_rank);

// Live as long as the group; NULL if there is no world.
RANKRUN_API const char* rankrun_group_name(const rankrun_group* group);
RANKRUN_API const char* rankrun_group_description(const rankrun_group* group);
RANKRUN_API const char* rankrun_group_backend(const rankrun_group* group);  // "shm", "gloo"
// RANKRUN_OK, or RANKRUN_BACKEND if a collective has failed: rankrun_last_error()
// then says which and why.
RANKRUN_API rankrun_status rankrun_group_state(const rankrun_group* group);

RANKRUN_API int rankrun_backend_available(const char* name);
RANKRUN_API int rankrun_launched_by_agent(void);

// From the one to the other this worker saves what must not be cut short; see
// SavingNotice in distributed.h.
typedef struct rankrun_saving rankrun_saving;
RANKRUN_API rankrun_saving* rankrun_saving_begin(void);
RANKRUN_API void rankrun_saving_end(rankrun_saving* saving);

#ifdef __cplusplus
}
#endif
