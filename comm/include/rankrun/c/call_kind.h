#pragma once

// Kinds of calls that a backend of device_backend.h or backend.h carries out, and their blocks of
// memory.
//
//                    inputs                     outputs
//   ALL_REDUCE       one                        one, the same memory
//   REDUCE           one                        one, which may be the input; of use on the root
//   BROADCAST        none                       one, on the root also the input
//   ALL_GATHER       one                        one per rank
//   GATHER           one                        on the root one per rank, else none
//   SCATTER          on the root one per rank,  one
//                    else none
//   REDUCE_SCATTER   one per rank               one
//   ALL_TO_ALL       one per rank               one per rank
//   BARRIER          none                       none
//   SEND             one                        none
//   RECV             none                       one
//
// Blocks of different ranks may have different sizes, also 0. An input may be one of the outputs.
typedef enum rankrun_call_kind {
  RANKRUN_CALL_ALL_REDUCE = 1,
  RANKRUN_CALL_REDUCE = 2,
  RANKRUN_CALL_BROADCAST = 3,
  RANKRUN_CALL_ALL_GATHER = 4,
  RANKRUN_CALL_GATHER = 5,
  RANKRUN_CALL_SCATTER = 6,
  RANKRUN_CALL_REDUCE_SCATTER = 7,
  RANKRUN_CALL_ALL_TO_ALL = 8,
  RANKRUN_CALL_BARRIER = 9,
  RANKRUN_CALL_SEND = 10,
  RANKRUN_CALL_RECV = 11
} rankrun_call_kind;
