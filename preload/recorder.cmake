# libfragtrace.so, the library that programs load.
include(libraries.cmake)

# The recorder's core. Tests can link it, without any preloading. The session comes first: every
# process reads its state at exit. As the first object it lies in a page of data that the loader has
# written already.
add_library(fragtrace_recorder_core OBJECT
    recorder/session.cpp
    recorder/api.cpp
    recorder/child_ends.cpp
    recorder/control.cpp
    recorder/drain_thread.cpp
    recorder/trace_facts.cpp
    recorder/flush.cpp
    recorder/job_place.cpp
    recorder/labels.cpp
    live/live_table.cpp
    live/live_table_events.cpp
    recorder/numbered_names.cpp
    recorder/options.cpp
    recorder/parts.cpp
    recorder/process_life.cpp
    recorder/program_pools.cpp
    recorder/python_code.cpp
    recorder/ranges.cpp
    recorder/recorder.cpp
    recorder/ring.cpp
    recorder/safe_names.cpp
    recorder/session_name.cpp
    recorder/stack_native.cpp
    recorder/stack_python.cpp
    recorder/stack_table.cpp
    recorder/trace_file.cpp
    recorder/trace_file_names.cpp
    stacks/python_layout.cpp
    stacks/python_lines.cpp
    stacks/recurring_stacks.cpp
    stacks/stack_walk.cpp
    stacks/thread_stacks.cpp
    stacks/unwind_entries.cpp
    stacks/unwind_rules.cpp
    stacks/unwind_tables.cpp
    system/class_tables.cpp
    system/clock.cpp
    system/environment.cpp
    system/modules.cpp
    system/loaded_objects.cpp
    system/local_symbols.cpp
    system/own_thread.cpp
    system/sys.cpp
    system/thread_state.cpp)

# ---- hooks: sources and exported symbols ---------------------------------------------------------
# hooks/hooks.cmake appends to FRAGTRACE_HOOK_SOURCES (C++ and assembly) and FRAGTRACE_HOOK_EXPORTS
# (symbol names; the wildcards of version scripts are allowed, visibility is hidden by default).
set(FRAGTRACE_HOOK_SOURCES "")
set(FRAGTRACE_HOOK_EXPORTS "")
include(hooks/hooks.cmake)

# The library that programs load. It is linked as C, without exceptions, RTTI or guards, so it needs
# libc alone.
add_library(fragtrace SHARED $<TARGET_OBJECTS:fragtrace_recorder_core> ${FRAGTRACE_HOOK_SOURCES})
foreach(target fragtrace_recorder_core fragtrace)
    target_link_libraries(${target} PRIVATE fragtrace::format fragtrace_zstd fragtrace_libunwind)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
        -fvisibility=hidden)
    target_compile_definitions(${target} PRIVATE FRAGTRACE_VERSION="${PROJECT_VERSION}")
    fragtrace_warnings(${target})
endforeach()
target_include_directories(fragtrace_recorder_core INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(fragtrace_recorder_core INTERFACE fragtrace_zstd fragtrace_libunwind)

set(exports ${FRAGTRACE_HOOK_EXPORTS})
list(JOIN exports "; " exports)
file(CONFIGURE OUTPUT fragtrace.map CONTENT "{
    global:
        @exports@;
    local:
        *;
};
" @ONLY)
set_target_properties(fragtrace PROPERTIES
    LINKER_LANGUAGE C
    LINK_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/fragtrace.map)
check_linker_flag(C -Wl,-z,noseparate-code FRAGTRACE_HAS_ONE_SEGMENT)  # zig's linker lacks it
if(FRAGTRACE_HAS_ONE_SEGMENT)
    set(FRAGTRACE_ONE_SEGMENT -Wl,-z,noseparate-code)
endif()

# The C library's start files put an empty function, which every process would call at its end, into a
# page of its own. A name that does not exist leaves it out; destructors are in .fini_array.
check_linker_flag(C -Wl,-fini=fragtrace_none FRAGTRACE_HAS_FINI)
if(FRAGTRACE_HAS_FINI)
    set(FRAGTRACE_NO_FINI -Wl,-fini=fragtrace_none)
endif()

# The linker resolves the recorder's own functions, not the loader in every process. The table of
# hooks names most exported functions. It must refer to the recorder's even if another preloaded
# library has the same names. Each segment costs a mapping in every process, so code and constants
# share one. No data is made read-only later: that would cost each process a call, a split mapping
# and two page faults (10 us of /bin/true). The hooks' table is written later in any case.
target_link_options(fragtrace PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/fragtrace.map
    -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete
    -Wl,-z,norelro ${FRAGTRACE_NO_FINI} ${FRAGTRACE_ONE_SEGMENT} ${FRAGTRACE_OWN_FUNCTIONS} -Wl,--as-needed
    # Drops the unused parts of zstd and libunwind. Each imported function of the C library costs a
    # look-up at every start.
    -Wl,--gc-sections)

install(TARGETS fragtrace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT fragtrace)
# The Python module. docs/guide.md says how Python finds it. A wheel has it as a package.
if(NOT SKBUILD)
    install(DIRECTORY python/fragtrace DESTINATION ${CMAKE_INSTALL_DATADIR}/fragtrace/python COMPONENT fragtrace
            FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()
