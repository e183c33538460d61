# The installed libraries, each shared and static, from the objects of the folders' own archives.
#
# shared: exports what its version script says, texo_* and no more; LLVM, where it is needed, is inside
#   and out of sight, so that another LLVM in the same process is not disturbed.
# static: one object in one archive, in which all that is not exported has become local, so that no name
#   of ours can meet one of the program's.
if(TEXO_SANITIZE)
  return()
endif()
include(GNUInstallDirs)

# name: of the file without lib; ARGN: the archives it is made of
function(texo_shared_library target name)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(script ${PROJECT_SOURCE_DIR}/cmake/lib${name}.map)
  add_library(${target} SHARED ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${TEXO_ABI}
    LINKER_LANGUAGE C LINK_DEPENDS ${script} INSTALL_RPATH "" BUILD_RPATH_USE_ORIGIN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,--exclude-libs,ALL -Wl,-z,defs
    -Wl,-z,relro -Wl,-z,now -static-libgcc)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# The shared one, whose target is named, and the archive.
function(texo_library target name)
  texo_shared_library(${target} ${name} ${ARGN})
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(archive ${PROJECT_BINARY_DIR}/lib/lib${name}.a)
  set(whole ${PROJECT_BINARY_DIR}/lib/${name}.o)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} Dqcs ${archive} ${whole}
    DEPENDS ${ARGN} ${target} # for the folder it is written to
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target}_static ALL DEPENDS ${archive})
  install(TARGETS ${target} EXPORT texo-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

texo_library(texo_rt texo-rt texo_runtime)
target_link_libraries(texo_rt PRIVATE m)
# Whoever ships it ships little: debug information, four times its size, stays in the archive.
target_link_options(texo_rt PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Wl,--strip-debug>)
install(FILES ${PROJECT_SOURCE_DIR}/include/texo_rt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(packages texo-rt)
if(TARGET texo_codegen)
  set(TEXO_LIBRARY_PARTS texo_api texo_codegen texo_passes texo_frontend texo_ir)
  texo_library(texo_shared texo ${TEXO_LIBRARY_PARTS})
  set_target_properties(texo_shared PROPERTIES EXPORT_NAME texo INSTALL_RPATH "$ORIGIN") # where libtexo-rt lies
  target_link_libraries(texo_shared PUBLIC texo_rt PRIVATE texo_llvm m)
  target_link_options(texo_shared PRIVATE -Wl,--gc-sections)
  set_target_properties(texo PROPERTIES EXPORT_NAME command)
  install(TARGETS texo EXPORT texo-targets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # what the command says of itself, where man and the shells look
  foreach(text "--man man/man1/texo.1" "completion bash bash-completion/completions/texo" "completion zsh zsh/site-functions/_texo"
      "completion fish fish/vendor_completions.d/texo.fish")
    string(REGEX REPLACE "^(.*) (.*)/(.*)$" "\\1;\\2;\\3" text "${text}")
    list(GET text 0 words)
    list(GET text 1 folder)
    list(GET text 2 name)
    separate_arguments(words)
    set(made ${PROJECT_BINARY_DIR}/lib/share/${folder}/${name})
    add_custom_command(OUTPUT ${made} COMMAND texo ${words} > ${made} DEPENDS texo)
    list(APPEND texts ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/share/${folder})
  endforeach()
  add_custom_target(texo_texts ALL DEPENDS ${texts})
  install(FILES ${PROJECT_SOURCE_DIR}/include/texo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/python/texo.py DESTINATION ${CMAKE_INSTALL_DATADIR}/texo)
  list(APPEND packages texo)
endif()

# --- for pkg-config: paths from where the file lies, so that the whole can be moved ---
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
# What a program that links the static library needs beside it.
set(llvm_private "")
if(TARGET texo_llvm)
  execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libs ${TEXO_LLVM_COMPONENTS}
    OUTPUT_VARIABLE llvm_private OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(llvm_private "-L${LLVM_LIBRARY_DIR} ${llvm_private} -lz -lzstd -lstdc++ -ldl -lm")
endif()
separate_arguments(llvm_private_list UNIX_COMMAND "${llvm_private}")
set(texo_dir ${CMAKE_INSTALL_LIBDIR}/cmake/texo)
foreach(p ${packages})
  configure_file(cmake/${p}.pc.in lib/${p}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/lib/${p}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# --- for CMake ---
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/texo-config.cmake.in lib/texo-config.cmake INSTALL_DESTINATION ${texo_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lib/texo-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lib/texo-config.cmake ${PROJECT_BINARY_DIR}/lib/texo-config-version.cmake
  DESTINATION ${texo_dir})
install(EXPORT texo-targets NAMESPACE texo:: DESTINATION ${texo_dir})
