// `ars version`: what a bug report needs to name.
#include "server/options.hpp"

#include <boost/version.hpp>
#include <openssl/crypto.h>

#include <cstdio>

namespace ars::server {

int command_version() {
    std::printf(
        "ars %s\ncompiler: %s\nboost: %s\nopenssl: %s\n",
        ARS_VERSION,
        __VERSION__,
        BOOST_LIB_VERSION,
        OpenSSL_version(OPENSSL_VERSION)
    );
    return 0;
}

}  // namespace ars::server
