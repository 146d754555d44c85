// System calls without libc, for processes that share their memory with another one (keepers): no
// errno, no locks, no allocation. Only scope-init code may include this.
#pragma once

#include <sys/syscall.h>

namespace ars::sandbox {

// Returns the kernel's answer: negative errno on failure.
#if defined(__x86_64__)
inline long raw_syscall(
    long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0
) {
    long result = number;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// clone(2) whose child runs `function(argument)` on the stack that ends at `stack_top` (16-byte
// aligned) and exits with its value.
inline long raw_clone(
    unsigned long flags, void* stack_top, int (*function)(void*), void* argument
) {
    void** top = static_cast<void**>(stack_top);
    *--top = argument;
    *--top = reinterpret_cast<void*>(function);
    long result = SYS_clone;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "pop %%rax\n\t"
        "pop %%rdi\n\t"
        "call *%%rax\n\t"
        "mov %%eax, %%edi\n\t"
        "mov $60, %%eax\n\t"
        "syscall\n\t"
        "1:\n\t"
        : "+a"(result)
        : "D"(flags), "S"(top), "d"(0L), "r"(r10), "r"(r8)
        : "rcx", "r11", "memory"
    );
    return result;
}
#elif defined(__aarch64__)
inline long raw_syscall(
    long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0
) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

inline long raw_clone(
    unsigned long flags, void* stack_top, int (*function)(void*), void* argument
) {
    void** top = static_cast<void**>(stack_top);
    *--top = argument;
    *--top = reinterpret_cast<void*>(function);
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = static_cast<long>(flags);
    register void** x1 __asm__("x1") = top;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile(
        "svc #0\n\t"
        "cbnz x0, 1f\n\t"
        "ldp x1, x0, [sp], #16\n\t"
        "blr x1\n\t"
        "mov x8, #93\n\t"
        "svc #0\n\t"
        "1:\n\t"
        : "+r"(x0)
        : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
        : "x30", "memory"
    );
    return x0;
}
#else
#error "raw system calls are written for x86-64 and arm64"
#endif

}  // namespace ars::sandbox
