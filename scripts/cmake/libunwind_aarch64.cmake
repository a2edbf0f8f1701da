# Changes libunwind's source for aarch64 (cmake -DSOURCE=FOLDER -P this file). Its release 1.6 does not
# know signed return addresses, and guesses where it should stop:
# - The instruction that signs return addresses is part of the unwind tables. It changes no register's
#   place, so it is skipped.
# - A signed address is read through a function of the recorder that removes the signature
#   (stack_native.cpp).
# - Code without unwind tables ends the stack, and so does an address that cannot be read. The link
#   register, which libunwind would use instead, has the caller's address only in the innermost frame.
# - The size of a page is the kernel's: 4, 16 or 64 KiB.
# - Frames have their return address, as on x86-64, not the address before it.
function(change file old new)
    file(READ ${SOURCE}/src/${file} text)
    string(FIND "${text}" "${old}" first)
    string(FIND "${text}" "${old}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "${SOURCE}/src/${file} does not contain this text once: ${old}")
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
    file(WRITE ${SOURCE}/src/${file} "${text}")
endfunction()

set(declaration "unsigned long fragtrace_without_signature(unsigned long);\n")
change(dwarf/Gparser.c "case DW_CFA_GNU_window_save:\n" "case DW_CFA_GNU_window_save:\n          break;\n")
change(dwarf/Gparser.c "    c->ip = ip;\n    ret = 1;" "    c->ip = fragtrace_without_signature(ip);\n    ret = 1;")
change(dwarf/Gparser.c "static int\nfetch_proc_info " "${declaration}static int\nfetch_proc_info ")
change(aarch64/Gtrace.c "    /* If we failed or ended" "    pc = fragtrace_without_signature(pc);\n    /* If we failed or ended")
change(aarch64/Gtrace.c "(void *) (pc - d->use_prev_instr)" "(void *) pc")
change(aarch64/Gtrace.c "HIDDEN int\ntdep_trace " "${declaration}HIDDEN int\ntdep_trace ")
change(aarch64/Gstep.c "      /* DWARF failed. */\n" "      return 0;\n")
change(aarch64/Gstep.c "      /* This is probably SIGBUS. */\n" "      return 0;\n")
change(aarch64/Ginit.c "#define PAGE_SIZE 4096" "#define PAGE_SIZE ((unw_word_t)getpagesize())")
