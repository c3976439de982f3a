#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>

#include "base/result.h"

// The functions of CUDA's runtime and of NCCL that the plug-in calls. It links neither library, so
// that it works with the version that a framework has loaded, the system's or PyPI's, for CUDA
// 12 and 13.
namespace rankrun::comm::nccl {

struct NvidiaFunctions {
  decltype(&::cudaDeviceGetStreamPriorityRange) cudaDeviceGetStreamPriorityRange;
  decltype(&::cudaEventCreateWithFlags) cudaEventCreateWithFlags;
  decltype(&::cudaEventDestroy) cudaEventDestroy;
  decltype(&::cudaEventQuery) cudaEventQuery;
  decltype(&::cudaEventRecord) cudaEventRecord;
  decltype(&::cudaFree) cudaFree;
  decltype(&::cudaFreeAsync) cudaFreeAsync;
  decltype(&::cudaGetDeviceCount) cudaGetDeviceCount;
  decltype(&::cudaGetDriverEntryPointByVersion) cudaGetDriverEntryPointByVersion;
  decltype(&::cudaGetErrorString) cudaGetErrorString;
  // These two are overloaded in some versions of the header.
  cudaError_t (*cudaMalloc)(void** memory, size_t bytes);
  cudaError_t (*cudaMallocAsync)(void** memory, size_t bytes, cudaStream_t stream);
  decltype(&::cudaMemcpyAsync) cudaMemcpyAsync;
  decltype(&::cudaStreamCreateWithPriority) cudaStreamCreateWithPriority;
  decltype(&::cudaStreamDestroy) cudaStreamDestroy;
  decltype(&::cudaStreamIsCapturing) cudaStreamIsCapturing;
  decltype(&::cudaStreamSynchronize) cudaStreamSynchronize;
  decltype(&::cudaStreamWaitEvent) cudaStreamWaitEvent;
  decltype(&::cudaThreadExchangeStreamCaptureMode) cudaThreadExchangeStreamCaptureMode;

  decltype(&::ncclAllGather) ncclAllGather;
  decltype(&::ncclAllReduce) ncclAllReduce;
  decltype(&::ncclBroadcast) ncclBroadcast;
  decltype(&::ncclCommAbort) ncclCommAbort;
  decltype(&::ncclCommDeregister) ncclCommDeregister;
  decltype(&::ncclCommDestroy) ncclCommDestroy;
  decltype(&::ncclCommFinalize) ncclCommFinalize;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError;
  decltype(&::ncclCommInitRankConfig) ncclCommInitRankConfig;
  decltype(&::ncclCommRegister) ncclCommRegister;
  decltype(&::ncclCommSplit) ncclCommSplit;
  decltype(&::ncclGetErrorString) ncclGetErrorString;
  decltype(&::ncclGetLastError) ncclGetLastError;
  decltype(&::ncclGetUniqueId) ncclGetUniqueId;
  decltype(&::ncclGroupEnd) ncclGroupEnd;
  decltype(&::ncclGroupStart) ncclGroupStart;
  decltype(&::ncclRecv) ncclRecv;
  decltype(&::ncclRedOpCreatePreMulSum) ncclRedOpCreatePreMulSum;
  decltype(&::ncclRedOpDestroy) ncclRedOpDestroy;
  decltype(&::ncclReduce) ncclReduce;
  decltype(&::ncclReduceScatter) ncclReduceScatter;
  decltype(&::ncclSend) ncclSend;
};

// Loads both libraries at the first call. They stay until the process ends.
// Error: kInvalid, with the loader's reason, or with a function that an old library lacks.
const Result<NvidiaFunctions>& LoadNvidia();

// The functions, after LoadNvidia has succeeded.
const NvidiaFunctions& Nvidia();

}  // namespace rankrun::comm::nccl
