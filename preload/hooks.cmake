# Sources of the hooks, and the exported symbols as the rows of hooks.def give them.
set(FRAGTRACE_HOOK_SOURCES
    entry_points.cpp
    facts_cuda.cpp
    frameworks/nvtx.cpp
    frameworks/torch.cpp
    frameworks/torch_allocator.cpp
    frameworks/torch_captures.cpp
    frameworks/torch_deferred.cpp
    frameworks/torch_facts.cpp
    frameworks/torch_pending.cpp
    frameworks/torch_pools.cpp
    frameworks/torch_rewind.cpp
    frameworks/torch_routing.cpp
    frameworks/torch_settings.cpp
    frameworks/torch_slots.cpp
    hook_table.cpp
    hooks.cpp
    hooks_arrays.cpp
    hooks_contexts.cpp
    hooks_device_memory.cpp
    hooks_framework.cpp
    hooks_graphs.cpp
    hooks_host_memory.cpp
    hooks_launches.cpp
    hooks_modules.cpp
    hooks_pools.cpp
    hooks_sharing.cpp
    hooks_stream_ordered.cpp
    hooks_virtual_memory.cpp
    jump.S
    known_callers.cpp
    memory_delta.cpp
    nvml.cpp
    pools_cuda.cpp
    resolve.cpp
    unload.cpp)

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/hooks.def hook_rows
     REGEX "^FT_(DRIVER|RUNTIME|FRAMEWORK|LOADER|EXPORT)\\(")
foreach(row ${hook_rows})
    string(REGEX REPLACE "^FT_[A-Z]+\\(([A-Za-z0-9_]+).*" "\\1" symbol "${row}")
    list(APPEND FRAGTRACE_HOOK_EXPORTS ${symbol})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/hooks.def)
