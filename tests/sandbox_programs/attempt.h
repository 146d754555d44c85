/* One line for each attempt: "name: blocked EPERM", or "name: OPEN". The tests compare the lines with a table. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void attempt(const char *name, long result) {
    if (result < 0) {
        printf("%s: blocked %s\n", name, strerrorname_np(errno));
    } else {
        printf("%s: OPEN\n", name);
    }
    fflush(stdout);
}
