# Sources of the hooks, and the exported symbols, read from the rows of hooks.def.
set(FRAGTRACE_HOOK_SOURCES
    frameworks/ggml.cpp
    frameworks/jax.cpp
    frameworks/nvtx.cpp
    frameworks/nvtx_memory.cpp
    frameworks/nvtx_names.cpp
    frameworks/onnxruntime.cpp
    frameworks/onnxruntime_object.cpp
    frameworks/torch.cpp
    frameworks/torch_allocator.cpp
    frameworks/torch_captures.cpp
    frameworks/torch_deferred.cpp
    frameworks/torch_version.cpp
    frameworks/torch_pending.cpp
    frameworks/torch_pools.cpp
    frameworks/tensorflow.cpp
    frameworks/torch_labels.cpp
    frameworks/torch_rewind.cpp
    frameworks/torch_routing.cpp
    frameworks/torch_settings.cpp
    frameworks/torch_slots.cpp
    hooks/arrays.cpp
    hooks/contexts.cpp
    hooks/device_memory.cpp
    hooks/entry_points.cpp
    hooks/cuda_facts.cpp
    hooks/framework.cpp
    hooks/graphs.cpp
    hooks/hook_table.cpp
    hooks/hook_call.cpp
    hooks/host_memory.cpp
    hooks/jump.S
    hooks/known_callers.cpp
    hooks/launches.cpp
    hooks/memory_delta.cpp
    hooks/modules.cpp
    hooks/nccl.cpp
    hooks/nvml.cpp
    hooks/pools.cpp
    hooks/pools_cuda.cpp
    hooks/resolve.cpp
    hooks/sharing.cpp
    hooks/stream_ordered.cpp
    hooks/unload.cpp
    hooks/virtual_memory.cpp)

# It names a personality function for its frames.
set_source_files_properties(frameworks/onnxruntime.cpp PROPERTIES
    COMPILE_OPTIONS -fasynchronous-unwind-tables)

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/hooks.def hook_rows
     REGEX "^FT_(DRIVER|RUNTIME|FRAMEWORK|NCCL|LOADER|EXPORT)\\(")
foreach(row ${hook_rows})
    string(REGEX REPLACE "^FT_[A-Z]+\\(([A-Za-z0-9_]+).*" "\\1" symbol "${row}")
    list(APPEND FRAGTRACE_HOOK_EXPORTS ${symbol})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/hooks.def)
