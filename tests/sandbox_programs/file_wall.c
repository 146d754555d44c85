/* file_wall PATH...: reads, changes and replaces files and directories that were never given. The name of each attempt
   starts with the place of the path in the list. */
#include "attempt.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static int place;

static void on_path(const char *what, long result) {
    char name[64];
    const int saved = errno;
    snprintf(name, sizeof name, "%d %s", place, what);
    errno = saved;
    attempt(name, result);
}

int main(int argc, char **argv) {
    for (place = 1; place < argc; ++place) {
        const char *path = argv[place];
        on_path("read", open(path, O_RDONLY | O_CLOEXEC));
        on_path("write", open(path, O_RDWR | O_CLOEXEC));
        on_path("truncate", truncate(path, 0));
        on_path("list", open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        on_path("chmod", chmod(path, 0777));
        on_path("rename", rename(path, "stolen"));
        on_path("link", link(path, "linked"));
        on_path("unlink", unlink(path));
        on_path("rmdir", rmdir(path));
        on_path("setxattr", setxattr(path, "user.x", "x", 1, 0));
    }
    return 0;
}
