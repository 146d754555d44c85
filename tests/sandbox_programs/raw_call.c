/* raw_call NUMBER [ARG...]: one system call with 64-bit arguments exactly as given, past every libc wrapper.
   raw_call i386 NUMBER: the same through the 32-bit entry. Prints the kernel's answer. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long call(long number, const long *a) {
#if defined(__x86_64__)
    long result = number;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

int main(int argc, char **argv) {
    long arguments[6] = {0};
    if (argc < 2) {
        return 2;
    }
#if defined(__x86_64__)
    if (strcmp(argv[1], "i386") == 0 && argc > 2) {
        int result = (int)strtol(argv[2], NULL, 0);
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0), "d"(0) : "memory");
        printf("%d\n", result);
        return 0;
    }
#endif
    for (int i = 2; i < argc && i < 8; ++i) {
        arguments[i - 2] = (long)strtoull(argv[i], NULL, 0);
    }
    printf("%ld\n", call(strtol(argv[1], NULL, 0), arguments));
    return 0;
}
