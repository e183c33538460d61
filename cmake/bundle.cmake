# The relocatable bundle (scripts/bundle.sh): what an unpacked folder needs to run on a machine that has
# libc alone. Three things in it are linked with LLVM (the command, random_test, libtexo), so that LLVM
# is there once, as a library that exports what the code generator calls, under a version of its own:
# another LLVM in the same process is not disturbed. Nothing here is part of `make install`.
if(TEXO_SANITIZE OR NOT TARGET texo_codegen)
  return()
endif()
include(GNUInstallDirs)
set(names ${PROJECT_BINARY_DIR}/bundle/llvm)
set(lister ${PROJECT_SOURCE_DIR}/cmake/llvm_names.cmake)
add_custom_command(OUTPUT ${names}.map ${names}.c
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DARCHIVE=$<TARGET_FILE:texo_codegen> -DMAP=${names}.map -DROOTS=${names}.c -P ${lister}
  DEPENDS texo_codegen ${lister} VERBATIM)
add_library(bundle_llvm SHARED EXCLUDE_FROM_ALL ${names}.c)
target_link_libraries(bundle_llvm PRIVATE texo_llvm)
target_link_options(bundle_llvm PRIVATE -Wl,--version-script=${names}.map -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro
  -Wl,-z,now -Wl,-z,pack-relative-relocs -static-libgcc)
set_target_properties(bundle_llvm PROPERTIES OUTPUT_NAME texo-llvm SOVERSION ${PROJECT_VERSION} LINK_DEPENDS ${names}.map
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle)

# Makes the target what its like outside of the bundle is, but with LLVM from that library.
function(bundle_target target)
  set_target_properties(${target} PROPERTIES LLVM_LIBRARY bundle_llvm EXCLUDE_FROM_ALL ON BUILD_WITH_INSTALL_RPATH ON
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundle
    INSTALL_RPATH "$ORIGIN:$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  add_dependencies(bundle ${target})
endfunction()

# A program keeps its target's name until it is installed, since Ninja takes the name of a file for a target's.
function(bundle_program target name)
  bundle_target(${target})
  target_link_options(${target} PRIVATE -s)
  install(PROGRAMS $<TARGET_FILE:${target}> RENAME ${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT bundle EXCLUDE_FROM_ALL)
endfunction()

add_custom_target(bundle DEPENDS bundle_llvm texo_rt)
add_executable(bundle_texo ${PROJECT_SOURCE_DIR}/driver/main.c)
target_compile_definitions(bundle_texo PRIVATE TEXO_VERSION="${PROJECT_VERSION}")
target_link_libraries(bundle_texo PRIVATE texo_command texo_runtime_bitcode)
bundle_program(bundle_texo texo)
texo_shared_library(bundle_shared texo ${TEXO_LIBRARY_PARTS})
target_link_libraries(bundle_shared PRIVATE texo_rt texo_llvm m)
target_link_options(bundle_shared PRIVATE -Wl,--gc-sections)
bundle_target(bundle_shared)
install(TARGETS bundle_shared bundle_llvm texo_rt COMPONENT bundle EXCLUDE_FROM_ALL LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(DIRECTORY bench DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "gpu/*.tex"
  PATTERN "gpu_streams/*.tex" PATTERN "cpu/pairs.tex" PATTERN "native" EXCLUDE PATTERN "__pycache__" EXCLUDE)

# The rest lies as in the tree, so that scripts and tests find it.
foreach(path include/texo.h include/texo_rt.h python/texo.py scripts/gpu-check.sh scripts/gpu_torch.py scripts/gpu-library.py scripts/gpu-sizes.py scripts/gpu-products.py scripts/gpu-convolutions.py scripts/gpu-attention.py scripts/gpu-exact.py scripts/gpu-order.py examples
    tests/fuse tests/lang/rules tests/run/programs LICENSE)
  get_filename_component(folder ./${path} DIRECTORY)
  set(options DESTINATION ${folder} COMPONENT bundle EXCLUDE_FROM_ALL)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${path})
    install(DIRECTORY ${path} ${options} FILES_MATCHING PATTERN "*.tex" PATTERN "embed/*")
  elseif(path MATCHES "\\.sh$")
    install(PROGRAMS ${path} ${options})
  else()
    install(FILES ${path} ${options})
  endif()
endforeach()
