/* flood MEBIBYTES: that much of bytes that are no text, to both streams in turn. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static unsigned char block[1 << 20];
    for (size_t i = 0; i < sizeof block; ++i) {
        block[i] = (unsigned char)(i * 31 + i / 251);
    }
    for (long n = argc > 1 ? atol(argv[1]) : 1; n > 0; --n) {
        for (size_t done = 0; done < sizeof block;) {
            const ssize_t wrote = write(1 + (int)(n & 1), block + done, sizeof block - done);
            if (wrote <= 0) {
                return 1;
            }
            done += (size_t)wrote;
        }
    }
    return 0;
}
