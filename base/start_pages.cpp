#include "base/start_pages.hpp"

#include <cstddef>
#include <cstdint>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ars::base {

namespace {

// Never a segment that is written: its pages would come back as they are in the file.
int unmap_unwritten(dl_phdr_info* program, std::size_t /*size*/, void* /*unused*/) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < program->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = program->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
            continue;
        }
        const std::uintptr_t begin = program->dlpi_addr + segment.p_vaddr;
        const std::uintptr_t first = begin & ~(page - 1);
        // A refusal costs nothing but the memory.
        (void
        )::madvise(reinterpret_cast<void*>(first), begin + segment.p_memsz - first, MADV_DONTNEED);
    }
    return 1;  // the program itself comes first; a static one is alone
}

}  // namespace

void let_go_of_start_pages() { ::dl_iterate_phdr(unmap_unwritten, nullptr); }

}  // namespace ars::base
