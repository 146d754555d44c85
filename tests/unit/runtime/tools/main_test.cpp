// The program is its own scope init, as the server is: it must say so before anything else runs.
#include "sandbox/scope.hpp"

#include <gtest/gtest.h>

int main(int argc, char** argv) {
    ars::sandbox::become_scope_init_if_asked(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
