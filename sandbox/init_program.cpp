#include "sandbox/init_program.hpp"

// ARS_INIT_PROGRAM: the path of the built program, from CMake.
__asm__(
    ".section .rodata.ars_init_program, \"a\"\n"
    ".globl ars_init_program_begin, ars_init_program_end\n"
    ".hidden ars_init_program_begin, ars_init_program_end\n"
    ".balign 16\n"
    "ars_init_program_begin:\n"
    ".incbin \"" ARS_INIT_PROGRAM
    "\"\n"
    "ars_init_program_end:\n"
    ".previous\n"
);

extern "C" const char ars_init_program_begin[];
extern "C" const char ars_init_program_end[];

namespace ars::sandbox {

std::string_view init_program() {
    return {
        ars_init_program_begin,
        static_cast<std::size_t>(ars_init_program_end - ars_init_program_begin)
    };
}

}  // namespace ars::sandbox
