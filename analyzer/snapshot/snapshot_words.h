// The known texts of a snapshot: keys of its dicts, and values. The Word of a text is its number in
// the reader's table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fragtrace::analyzer {

#define FRAGTRACE_SNAPSHOT_KEYS(WORD)                             \
    WORD(kAction, "action")                                       \
    WORD(kAddr, "addr")                                           \
    WORD(kSize, "size")                                           \
    WORD(kStream, "stream")                                       \
    WORD(kTimeUs, "time_us")                                      \
    WORD(kFrames, "frames")                                       \
    WORD(kPoolId, "pool_id")                                      \
    WORD(kDeviceFree, "device_free")                              \
    WORD(kCompileContext, "compile_context")                      \
    WORD(kUserMetadata, "user_metadata")                          \
    WORD(kInternalMetadata, "internal_metadata")                  \
    WORD(kDevice, "device")                                       \
    WORD(kAddress, "address")                                     \
    WORD(kTotalSize, "total_size")                                \
    WORD(kSegmentType, "segment_type")                            \
    WORD(kSegmentPoolId, "segment_pool_id")                       \
    WORD(kIsExpandable, "is_expandable")                          \
    WORD(kBlocks, "blocks")                                       \
    WORD(kRequestedSize, "requested_size")                        \
    WORD(kState, "state")                                         \
    WORD(kHistory, "history")                                     \
    WORD(kRealSize, "real_size")                                  \
    WORD(kName, "name")                                           \
    WORD(kFilename, "filename")                                   \
    WORD(kLine, "line")                                           \
    WORD(kStage, "stage")                                         \
    WORD(kSegments, "segments")                                   \
    WORD(kDeviceTraces, "device_traces")                          \
    WORD(kAllocatorSettings, "allocator_settings")                \
    WORD(kExternalAnnotations, "external_annotations")            \
    WORD(kHostSegments, "host_segments")                          \
    WORD(kHostTraces, "host_traces")                              \
    WORD(kConf, "PYTORCH_CUDA_ALLOC_CONF")                        \
    WORD(kMaxSplitSize, "max_split_size")                         \
    WORD(kGcThreshold, "garbage_collection_threshold")            \
    WORD(kExpandableSegments, "expandable_segments")              \
    WORD(kRoundup, "roundup_power2_divisions")                    \
    WORD(kMaxCachedSize, "max_cached_size")                       \
    WORD(kRecordStreamReuse, "graph_capture_record_stream_reuse") \
    WORD(kAllocatedSize, "allocated_size")                        \
    WORD(kActiveSize, "active_size")                              \
    WORD(kNodeOperation, "fx_node_op")                            \
    WORD(kNodeName, "fx_node_name")                               \
    WORD(kNodeInfo, "fx_node_info")                               \
    WORD(kNodeTrace, "fx_original_trace")                         \
    WORD(kCategory, "category")                                   \
    WORD(kMaxRound, "max_round_threshold")                        \
    WORD(kReleaseLock, "release_lock_on_cudamalloc")              \
    WORD(kPinnedThreads, "pinned_num_register_threads")           \
    WORD(kPinnedRegister, "pinned_use_cuda_host_register")        \
    WORD(kTorchVersion, "torch_version")                          \
    WORD(kWithoutPool, "devices_without_pool")                    \
    WORD(kNative, "native")

// Values. The actions come first, in the order of SnapshotAction.
#define FRAGTRACE_SNAPSHOT_VALUES(WORD)            \
    WORD(kAllocWord, "alloc")                      \
    WORD(kFreeRequestedWord, "free_requested")     \
    WORD(kFreeCompletedWord, "free_completed")     \
    WORD(kSegmentAllocWord, "segment_alloc")       \
    WORD(kSegmentFreeWord, "segment_free")         \
    WORD(kSegmentMapWord, "segment_map")           \
    WORD(kSegmentUnmapWord, "segment_unmap")       \
    WORD(kOomWord, "oom")                          \
    WORD(kSnapshotWord, "snapshot")                \
    WORD(kAnnotateWord, "annotate")                \
    WORD(kSmallWord, "small")                      \
    WORD(kInactiveWord, "inactive")                \
    WORD(kActiveAllocatedWord, "active_allocated") \
    WORD(kStartWord, "START")                      \
    WORD(kEndWord, "END")                          \
    WORD(kPendingWord, "active_pending_free")      \
    WORD(kLargeWord, "large")

enum Word : std::uint32_t {

#define FRAGTRACE_WORD(name, text) name,
    FRAGTRACE_SNAPSHOT_KEYS(FRAGTRACE_WORD) kKeyCount,
    kLastKey = kKeyCount - 1,
    FRAGTRACE_SNAPSHOT_VALUES(FRAGTRACE_WORD) kWordCount,
#undef FRAGTRACE_WORD
};

constexpr std::array<std::string_view, kWordCount> kWords = {
#define FRAGTRACE_WORD(name, text) text,
    FRAGTRACE_SNAPSHOT_KEYS(FRAGTRACE_WORD) FRAGTRACE_SNAPSHOT_VALUES(FRAGTRACE_WORD)
#undef FRAGTRACE_WORD
};

#undef FRAGTRACE_SNAPSHOT_KEYS
#undef FRAGTRACE_SNAPSHOT_VALUES

}  // namespace fragtrace::analyzer
