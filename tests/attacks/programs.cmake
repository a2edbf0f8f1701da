# The table: the test's sentence, its program, options of test_client.py, arguments.
client_program(errno errno.c)
client_program(signals signals.c)
client_program(threads threads.c)
client_program(many_threads many_threads.c)
client_program(ends ends.cpp)
client_program(exceptions exceptions.cpp)
client_program(processes processes.c)
client_program(stacks stacks.c)
client_program(restricted restricted.c)
client_program(driver_calls driver_calls.c NO_RUNTIME)
client_program(own_symbols own_symbols.c)
client_program(newer_plugins newer_plugins.c)
client_program(cancelled cancelled.c)
client_program(small_ends small_ends.c)
client_program(slow_dlopen slow_dlopen.c)
client_program(tied_thread tied_thread.c)
client_library(slow_library slow_library.c)
client_program(slow_storage slow_storage.c)
client_library(slow_files slow_files.c)
client_program(timed_out timed_out.c)
client_program(wrong_tables wrong_tables.c -fno-lto)
client_program(cleared_environment cleared_environment.c)
client_program(removed_folder removed_folder.c)
client_program(late_thread late_thread.c)
client_program(full_memory full_memory.c -fno-omit-frame-pointer)
foreach(library zstd.so.1 unwind.so.8 lzma.so.5)
    string(REGEX REPLACE "[.].*" "" name ${library})
    client_library(newer_${name} newer_copy.c)
    set_target_properties(client_newer_${name} PROPERTIES OUTPUT_NAME newer_${name} NO_SONAME ON)
    target_link_options(client_newer_${name} PRIVATE -Wl,-soname,lib${library})
    add_custom_command(TARGET client_newer_${name} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E create_symlink ../libnewer_${name}.so ${built}/newer/lib${library})
    client_library(needs_${name} newer_plugin.c)
    target_link_libraries(client_needs_${name} PRIVATE client_newer_${name})
    set_target_properties(client_needs_${name} PROPERTIES
        SKIP_BUILD_RPATH ON LINK_OPTIONS "-Wl,-rpath,${built}/newer")
endforeach()
client_program(with_address_sanitizer ends.cpp -fsanitize=address)
client_program(with_thread_sanitizer many_threads.c -fsanitize=thread)
client_library(saver saver.c)
client_library(limiter limiter.c)
client_library(thrower thrower.cpp)
client_library(faults faults.c)

client_program(signal_storm signal_storm.c)
client_program(killed killed.c)
client_program(soak soak.c)
client_program(handler_calls handler_calls.c)
client_program(unloading unloading.c NO_RUNTIME)
client_program(lookups lookups.c)
client_library(plain_runtime plain_runtime.c)
client_library(plain_runtime_two plain_runtime.c PLAIN_BASE=0x700000000ull)
client_library(plugin_one plugin.c)
client_library(plugin_two plugin.c)
target_link_libraries(client_plugin_one PRIVATE client_plain_runtime)
target_link_libraries(client_plugin_two PRIVATE client_plain_runtime_two)

client("errno is kept over every hooked call, failing ones too" errno --more-traces)
client("signal masks, handlers and the alternate stack stay as they are" signals)
client("threads keep their names and number, but for the recorder's own" threads)
client("64 threads that make their first call at once are all recorded" many_threads)
client("frees in destructors, exit handlers and ending threads are recorded" ends)
client("exceptions and long jumps pass through hooked calls" exceptions --then ./libthrower.so)
client("calls in a handler that interrupts the recorder are counted as lost" handler_calls
       --then ./libplain_runtime.so --lost reentrant -- in-the-recorder)
client("calls in handlers of a timer are recorded, but for some that interrupt calls" handler_calls
       --then ./libplain_runtime.so --lost anything -- by-timer)
client("calls in handlers on an alternate stack are recorded likewise" handler_calls
       --then ./libplain_runtime.so --lost anything -- on-alternate-stack)
client("signals as fast as another process can send them" signal_storm)
client("a plug-in in the place of another one calls its own runtime" unloading --no-virtual-gpu)
client("look-ups by dlsym, dlvsym and dlinfo find what they found" lookups)

client("a program that exports functions of zstd and of libunwind" own_symbols)
client("plug-ins that bring newer copies of zstd, libunwind and lzma" newer_plugins)
client("threads that are cancelled when they call, the first call included" cancelled)
foreach(flight "" on)
    client("exit on the smallest stack, flight recorder: ${flight}" small_ends
           --recorder FRAGTRACE_FLIGHT=${flight} -- exit)
    client("_exit on a small alternate stack, flight recorder: ${flight}" small_ends
           --recorder FRAGTRACE_FLIGHT=${flight} --ended quick_exit -- _exit)
endforeach()
client("a library whose constructor takes seconds, opened meanwhile" slow_dlopen)
client("storage that does not answer" slow_storage --then ./libslow_files.so --recorder SLOW=open
       --recorder FRAGTRACE_RING_DIRECTORY=@FOLDER@
       --lost anything --no-trace)
client("a ring's folder that does not answer" slow_storage --then ./libslow_files.so
       --recorder SLOW=ring --recorder FRAGTRACE_RING_DIRECTORY=@FOLDER@/rings)
client("assembly whose unwind tables are wrong" wrong_tables)
foreach(way clearenv own-list setenv-before)
    client("a program that clears its environment: ${way}" cleared_environment --no-virtual-gpu
           --then ./libplain_runtime.so -- ${way})
endforeach()
client("a handler that jumps out of the first call" timed_out --no-virtual-gpu
       --then ./libplain_runtime.so)
client("forks while storage hangs" slow_storage --then ./libslow_files.so --recorder SLOW=write
       --ended killed -- forks)
client("storage that hangs in mid-run: the ring has the rest" slow_storage
       --then ./libslow_files.so --recorder SLOW=write --ended killed)
client("a flight recorder's copy on slow storage is waited for" tied_thread
       --then ./libslow_files.so --recorder SLOW=little --recorder FRAGTRACE_FLIGHT=on)
client("a program that removes the folder of its trace" removed_folder --lost anything --no-trace)
client("a program that may create no thread at first" late_thread
       --recorder FRAGTRACE_RING_EVENTS=4096)
client("the first call by a thread tied to a processor" tied_thread)

client("vfork and exec: parent and children have traces of their own" processes -- vfork)
client("posix_spawn: parent and children have traces of their own" processes -- spawn)
client("fork: parent and children have traces of their own" processes
       --ended normal,quick_exit -- fork)
client("forty children at once" processes -- fork-storm)
client("fork while other threads make calls" processes -- fork-while-others-allocate)
client("fork before the first call: the parent leaves no file" processes -- fork-before)
client("clone, by the system call itself" processes -- clone)
client("a daemon that closes every descriptor" processes -- daemon)
client("a program that executes itself again and again" processes --ended exec,normal -- exec)
client("a program that executes itself forty times" processes --set EXEC_LEFT=40
       --ended exec,normal -- exec)
client("a program that unsets LD_PRELOAD for its children" processes -- unset-preload)

client("a call needs little of the stack, the first one too" stacks -- measure)
client("threads with the smallest stacks" stacks -- small-threads)
client("coroutines with stacks of their own" stacks -- coroutines)
client("a handler that survives stack overflow in hooked calls" stacks --lost anything -- overflow)

client("jemalloc before the recorder" many_threads --first libjemalloc.so.2)
client("jemalloc behind the recorder" many_threads --then libjemalloc.so.2)
client("a hook of cudaMalloc before the recorder, by RTLD_NEXT" many_threads --first ./libsaver.so)
client("a hook of cudaMalloc behind the recorder, by RTLD_NEXT" many_threads --then ./libsaver.so)
client("a hook of cudaMalloc before the recorder, by handle" many_threads --first ./libsaver.so
       --set SAVER_BY_HANDLE=1)
client("a hook of cudaMalloc behind the recorder, by handle" many_threads --then ./libsaver.so
       --set SAVER_BY_HANDLE=1)
client("a hook stays in the chain of a program that unsets LD_PRELOAD" processes
       --then ./libsaver.so -- unset-preload)
client("a hook of dlsym before the recorder hides the driver, and is not disturbed" driver_calls
       --first ./liblimiter.so --no-trace)
client("a hook of dlsym behind the recorder" driver_calls --then ./liblimiter.so)
client("a hook of cuGetProcAddress before the recorder hides the driver likewise" driver_calls
       --first ./liblimiter.so --no-trace -- by-entry-point)
client("a hook of cuGetProcAddress behind the recorder" driver_calls --then ./liblimiter.so
       -- by-entry-point)
if(NOT FRAGTRACE_SANITIZE)  # two sanitizers do not go together
    client("a program built with the address sanitizer" with_address_sanitizer --first libasan.so.8
           --set ASAN_OPTIONS=detect_leaks=0)
    client("a program built with the thread sanitizer" with_thread_sanitizer --first libtsan.so.2
           --then ./libplain_runtime.so)
    client("the address sanitizer's runtime behind the recorder" with_address_sanitizer
           --then libasan.so.8 --set ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0)
endif()

# Limits set before the first call, or after some calls. If a file can be written, nothing is lost.
foreach(limit no-address-space closed-streams closed-descriptors another-user another-folder
        umask-and-locale)
    client("a program under limits, ${limit}" restricted -- ${limit})
endforeach()
foreach(limit no-descriptors no-address-space closed-streams closed-descriptors another-user
        another-root sandbox-that-refuses sandbox-with-handler reused-standard-error another-folder
        umask-and-locale)
    client("a program under limits in mid-run, ${limit}" restricted -- ${limit} later)
endforeach()
foreach(limit no-descriptors no-file-size another-root sandbox-that-refuses)
    client("a program under limits that allow no file, ${limit}" restricted --lost anything
           --no-trace -- ${limit})
endforeach()
client("a file size limit that a trace meets" restricted --lost anything -- little-file-size)
client("a file size limit that a trace meets in mid-run" restricted --lost anything
       -- little-file-size later)
client("a file size limit below what is written already" restricted --lost anything
       --ended normal,not_recorded -- no-file-size later)
client("no message in a data file that became descriptor 2" restricted --lost anything --no-trace
       --recorder FRAGTRACE_OUTPUT=/proc/nowhere -- reused-standard-error)
client("a tmpfs too small for the ring" many_threads --within small
       --recorder FRAGTRACE_RING_DIRECTORY=@FOLDER@/small)
client("memory that the program fills while the ring grows" full_memory --within little-memory
       --recorder FRAGTRACE_RING_DIRECTORY=)
client("a disk too small for the trace" restricted --within small --lost anything --no-trace
       --recorder FRAGTRACE_OUTPUT=@FOLDER@/small -- nothing)
client("a working folder that cannot be written" restricted --within read-only --lost anything
       --no-trace --recorder FRAGTRACE_OUTPUT= -- nothing)
