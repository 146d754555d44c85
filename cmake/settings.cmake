# Every flag of the build hangs on one interface target, ars_settings.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Not the -O3 of CMake: the binary is shipped and starts often, and size counts for more than unrolled loops.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Not CMAKE_POSITION_INDEPENDENT_CODE with check_pie_supported(): CMake 3.25 then appends -pie after
# our -static-pie, and the result is silently a dynamic program.
add_compile_options(-fPIE)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS headers)
if(ARS_STATIC)
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    set(OPENSSL_USE_STATIC_LIBS ON)
endif()

# ars_library(NAME ...) finds a C library by name and wraps it as ars::ext_NAME.
function(ars_library name)
    find_library(ARS_LIB_${name} NAMES ${name} REQUIRED)
    add_library(ext_${name} INTERFACE)
    target_link_libraries(ext_${name} INTERFACE ${ARS_LIB_${name}})
endfunction()
foreach(lib lmdb seccomp uring cares yaml-cpp ssl crypto boost_json)
    ars_library(${lib})
endforeach()

add_library(ars_settings INTERFACE)
target_include_directories(ars_settings INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(ars_settings INTERFACE
    _GLIBCXX_ASSERTIONS BOOST_ASIO_NO_DEPRECATED BOOST_JSON_NO_LIB BOOST_ASIO_HAS_CO_AWAIT
    BOOST_ASIO_HAS_STD_COROUTINE BOOST_ERROR_CODE_HEADER_ONLY)
target_compile_options(ars_settings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wimplicit-fallthrough
    -fstack-protector-strong -fcf-protection -ffunction-sections -fdata-sections
    "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
target_link_options(ars_settings INTERFACE -fuse-ld=lld -Wl,-z,relro,-z,now,-z,noexecstack
    -Wl,--build-id -Wl,--gc-sections)
target_link_libraries(ars_settings INTERFACE Threads::Threads)
if(ARS_WERROR)
    target_compile_options(ars_settings INTERFACE -Werror)
endif()
if(ARS_SANITIZE)
    target_compile_options(ars_settings INTERFACE -fsanitize=${ARS_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(ars_settings INTERFACE -fsanitize=${ARS_SANITIZE})
    # Recycled coroutine frames would hide a use after free from the sanitizer.
    target_compile_definitions(ars_settings INTERFACE BOOST_ASIO_DISABLE_AWAITABLE_FRAME_RECYCLING)
else()
    target_compile_definitions(ars_settings INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

# ars_room(NAME SOURCE_DIR DEPENDENCIES...): a library of all .cpp files of one folder.
function(ars_room name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
    if(NOT sources)
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp "")
        set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
    endif()
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ars_settings ${ARGN})
endfunction()
