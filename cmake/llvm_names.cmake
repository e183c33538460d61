# The functions of LLVM that an archive calls, as a linker's version script that exports them and no
# others, and as C that refers to them, so that a linker takes them out of LLVM's archives.
# cmake -DNM=nm -DARCHIVE=a.a -DMAP=out.map -DROOTS=out.c -P llvm_names.cmake
execute_process(COMMAND ${NM} -u ${ARCHIVE} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "LLVM[A-Za-z0-9_]+" names "${listing}")
list(SORT names)
list(REMOVE_DUPLICATES names)
if(NOT names)
  message(FATAL_ERROR "${ARCHIVE} calls nothing of LLVM")
endif()
set(exported "")
set(declared "")
set(referred "")
foreach(name ${names})
  string(APPEND exported "\t\t${name};\n")
  string(APPEND declared "extern const char ${name}[];\n")
  string(APPEND referred "\t${name},\n")
endforeach()
file(CONFIGURE OUTPUT ${MAP} @ONLY CONTENT "TEXO_LLVM {\n\tglobal:\n@exported@\tlocal:\n\t\t*;\n};\n")
file(CONFIGURE OUTPUT ${ROOTS} @ONLY CONTENT
  "@declared@extern const char *const texo_llvm_roots[];\nconst char *const texo_llvm_roots[] = {\n@referred@};\n")
