/* Calls into parts of the kernel that no tool needs: keys, tracing, modules, handles, rings. Harmless if they pass. */
#include "attempt.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/klog.h>

int main(void) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event};
    char parameters[256] = {0}, handle[256] = {8};
    attempt("add_key", syscall(SYS_add_key, "user", "k", "v", 1, -4));
    attempt("request_key", syscall(SYS_request_key, "user", "k", NULL, -4));
    attempt("keyctl", syscall(SYS_keyctl, 0, -4, 1));
    attempt("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
    attempt("perf_event_open", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    attempt("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
    attempt("io_uring_setup", syscall(SYS_io_uring_setup, 8, parameters));
    attempt("io_uring_enter", syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0));
    attempt("io_uring_register", syscall(SYS_io_uring_register, 0, 0, NULL, 0));
    attempt("memfd_secret", syscall(SYS_memfd_secret, 0));
    attempt("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY));
    attempt("init_module", syscall(SYS_init_module, NULL, 0, ""));
    attempt("finit_module", syscall(SYS_finit_module, -1, "", 0));
    attempt("delete_module", syscall(SYS_delete_module, "no_such_module", O_NONBLOCK));
    attempt("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    attempt("quotactl", syscall(SYS_quotactl, 0, "/", 0, NULL));
    attempt("swapoff", syscall(SYS_swapoff, "/no-such-file"));
    attempt("acct", syscall(SYS_acct, "/no-such-file"));
    attempt("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)); /* CAD_OFF: changes a key binding */
    attempt("syslog", klogctl(10, NULL, 0));
    attempt("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
#if defined(__x86_64__)
    attempt("iopl", syscall(SYS_iopl, 3));
    attempt("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
#endif
    return 0;
}
