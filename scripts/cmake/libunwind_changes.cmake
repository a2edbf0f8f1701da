# Changes libunwind's source (cmake -DSOURCE=FOLDER -DPROCESSOR=NAME -P this file). The release is 1.6.
#
# It trusts the unwind tables of most code, and a wrong table (hand-written assembly) makes it read an
# address that is not mapped. So a function of the recorder checks every address before it is read
# (stack_native.cpp). libunwind's own check for doubtful frames is not used: it keeps two descriptors, and
# remembers pages that may have been unmapped since.
#
# On aarch64 the release does not know signed return addresses, and guesses where it should stop:
# - The instruction that signs return addresses is part of the unwind tables. It changes no register's
#   place, so it is skipped.
# - A signed address is read through a function of the recorder that removes the signature
#   (stack_native.cpp).
# - Code without unwind tables ends the stack, and so does an address that cannot be read. The link
#   register, which libunwind would use instead, has the caller's address only in the innermost frame.
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

if(PROCESSOR STREQUAL "aarch64")
    set(folder aarch64)
    set(doubtful "const struct cursor *c = (const struct cursor *)arg;
      if (likely (c != NULL) && unlikely (c->validate)
          && unlikely (validate_mem (addr)))")
else()
    set(folder x86_64)
    set(doubtful "if (unlikely (AS_ARG_GET_VALIDATE(arg))
          && unlikely (validate_mem (addr)))")
endif()
change(${folder}/Ginit.c "${doubtful}" "if (unlikely (! fragtrace_can_read_stack (addr)))")
change(${folder}/Ginit.c "static int\naccess_mem " "int fragtrace_can_read_stack(unsigned long);\nstatic int\naccess_mem ")
change(${folder}/Ginit.c "(void)\n{\n  open_pipe ();\n" "(void)\n{\n  return;\n")
change(${folder}/unwind_i.h "if (unlikely(validate))" "if (1)")
set(check "if (! fragtrace_can_read_stack (tmp1))\n            return -UNW_EBADFRAME;")
foreach(next "if ((ret = dwarf_readw " "switch (operand1)")
    change(dwarf/Gexpr.c "tmp1 = pop ();\n          ${next}" "tmp1 = pop ();\n          ${check}\n          ${next}")
endforeach()
change(dwarf/Gexpr.c "HIDDEN int\ndwarf_eval_expr " "int fragtrace_can_read_stack(unsigned long);\nHIDDEN int\ndwarf_eval_expr ")
if(NOT PROCESSOR STREQUAL "aarch64")
    return()
endif()

set(declaration "unsigned long fragtrace_without_signature(unsigned long);\n")
change(dwarf/Gparser.c "case DW_CFA_GNU_window_save:\n" "case DW_CFA_GNU_window_save:\n          break;\n")
change(dwarf/Gparser.c "    c->ip = ip;\n    ret = 1;" "    c->ip = fragtrace_without_signature(ip);\n    ret = 1;")
change(dwarf/Gparser.c "static int\nfetch_proc_info " "${declaration}static int\nfetch_proc_info ")
change(aarch64/Gtrace.c "    /* If we failed or ended" "    pc = fragtrace_without_signature(pc);\n    /* If we failed or ended")
change(aarch64/Gtrace.c "(void *) (pc - d->use_prev_instr)" "(void *) pc")
change(aarch64/Gtrace.c "HIDDEN int\ntdep_trace " "${declaration}HIDDEN int\ntdep_trace ")
change(aarch64/Gstep.c "      /* DWARF failed. */\n" "      return 0;\n")
change(aarch64/Gstep.c "      /* This is probably SIGBUS. */\n" "      return 0;\n")
