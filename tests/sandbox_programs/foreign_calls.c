/* The kernel's other call tables: x32 numbers and int 0x80. Each line is one call that the 64-bit table refuses. */
#include "attempt.h"

#if defined(__x86_64__)
static long old_table(int number, int a, int b, int c) {
    int result = number;
    __asm__ volatile("int $0x80" : "+a"(result) : "b"(a), "c"(b), "d"(c) : "memory");
    errno = result < 0 ? -result : 0;
    return result < 0 ? -1 : result;
}
#define X32 0x40000000L

int main(void) {
    attempt("x32 getpid", syscall(X32 + SYS_getpid));
    attempt("x32 ptrace", syscall(X32 + 521, 0, 0, 0, 0));
    attempt("x32 unshare", syscall(X32 + SYS_unshare, 0x10000000));
    attempt("x32 mount", syscall(X32 + SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
    attempt("i386 getpid", old_table(20, 0, 0, 0));
    attempt("i386 unshare", old_table(310, 0x10000000, 0, 0));
    attempt("i386 socketcall", old_table(102, 1, 0, 0));
    attempt("i386 keyctl", old_table(288, 0, -4, 1));
    return 0;
}
#else
int main(void) { return 0; }
#endif
