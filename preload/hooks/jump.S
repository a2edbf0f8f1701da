// dlsym and dlvsym. If fragtrace does not answer itself, both end in a jump to the real function,
// not in a call. The real function finds its caller by the return address (for RTLD_NEXT and
// RTLD_DEFAULT), so it must see the true caller. Only names that begin with "cu" (CUDA) or "nc"
// (NCCL) are examined, by a call of fragtrace_dlsym (entry_points.cpp), which compares the exact name.
//
// fragtrace_real_loader[0] is the real dlsym, [1] the real dlvsym. Both are zero until the first
// use; then fragtrace_find_loader sets them. This works before this library's constructors have
// run.

#if defined(__x86_64__)
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    xorl %ecx, %ecx
    jmp .Lask
    .cfi_endproc
    .size dlsym, . - dlsym

    .globl dlvsym
    .type dlvsym, @function
dlvsym:
    .cfi_startproc
    endbr64
    movl $1, %ecx
.Lask:
    testq %rsi, %rsi
    je .Lreal
    cmpb $0x63, (%rsi)
    jne .Lnccl
    cmpb $0x75, 1(%rsi)
    jne .Lreal
    jmp .Lexamine
.Lnccl:
    cmpb $0x6e, (%rsi)
    jne .Lreal
    cmpb $0x63, 1(%rsi)
    jne .Lreal
.Lexamine:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    // Arguments: (handle, name, version or nullptr, caller)
    testl %ecx, %ecx
    jne 1f
    xorl %edx, %edx
1:  movq 40(%rsp), %rcx
    call fragtrace_dlsym
    movq %rdx, %r11
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    je .Lreal
    movq %r11, %rax
    ret
.Lreal:
    leaq fragtrace_real_loader(%rip), %rax
    movq (%rax,%rcx,8), %rax
    testq %rax, %rax
    je .Lfind
    jmp *%rax
.Lfind:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call fragtrace_find_loader
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    leaq fragtrace_real_loader(%rip), %rax
    movq (%rax,%rcx,8), %rax
    testq %rax, %rax
    je .Lnone
    jmp *%rax
.Lnone:
    xorl %eax, %eax
    ret
    .cfi_endproc
    .size dlvsym, . - dlvsym

#elif defined(__aarch64__)
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    mov x3, #0
    b .Lask
    .cfi_endproc
    .size dlsym, . - dlsym

    .globl dlvsym
    .type dlvsym, %function
dlvsym:
    .cfi_startproc
    mov x3, #1
.Lask:
    cbz x1, .Lreal
    ldrb w9, [x1]
    cmp w9, #0x63
    b.ne .Lnccl
    ldrb w9, [x1, #1]
    cmp w9, #0x75
    b.ne .Lreal
    b .Lexamine
.Lnccl:
    cmp w9, #0x6e
    b.ne .Lreal
    ldrb w9, [x1, #1]
    cmp w9, #0x63
    b.ne .Lreal
.Lexamine:
    stp x29, x30, [sp, #-64]!
    .cfi_def_cfa_offset 64
    .cfi_offset x29, -64
    .cfi_offset x30, -56
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    // Arguments: (handle, name, version or nullptr, caller)
    cmp x3, #0
    csel x2, xzr, x2, eq
    mov x3, x30
    bl fragtrace_dlsym
    mov x9, x0
    mov x10, x1
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x29, x30, [sp], #64
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    cbz x9, .Lreal
    mov x0, x10
    ret
.Lreal:
    adrp x9, fragtrace_real_loader
    add x9, x9, :lo12:fragtrace_real_loader
    ldr x10, [x9, x3, lsl #3]
    cbz x10, .Lfind
    br x10
.Lfind:
    stp x29, x30, [sp, #-64]!
    .cfi_def_cfa_offset 64
    .cfi_offset x29, -64
    .cfi_offset x30, -56
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    bl fragtrace_find_loader
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x29, x30, [sp], #64
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    adrp x9, fragtrace_real_loader
    add x9, x9, :lo12:fragtrace_real_loader
    ldr x10, [x9, x3, lsl #3]
    cbz x10, .Lnone
    br x10
.Lnone:
    mov x0, #0
    ret
    .cfi_endproc
    .size dlvsym, . - dlvsym
#else
#error "no dlsym stub for this architecture"
#endif
    .section .note.GNU-stack,"",%progbits
